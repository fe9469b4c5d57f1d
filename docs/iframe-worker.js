/* Search runs in a worker, and browsers refuse workers to pages opened from a folder (file://). There a hidden frame
   does the same work: it runs the worker's script, and messages go back and forth. */
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.loaded = new Promise((resolve) => (this.frame.onload = resolve));
      const script = `<script src="${url}"><\/script>`;
      this.frame.srcdoc = `<script>postMessage = (data) => frameElement.answer(data)<\/script>${script}`;
      this.frame.answer = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      document.body.appendChild(this.frame);
    }
    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  }
  window.IFrameWorker = window.Worker = IFrameWorker;
}
