// The theme that was chosen, before anything is painted; numbers to the clipboard, and what is pointed at.
(() => {
  const chosen = localStorage.getItem("bathysphere-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
})();
function switchTheme() {
  const root = document.documentElement;
  const now = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
  localStorage.setItem("bathysphere-theme", root.dataset.theme);
}
// Says to the board which action is pointed at, by its number; null if none is any more.
function pointAt(action) {
  window.dispatchEvent(new CustomEvent("pointed", { detail: action }));
}
async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
