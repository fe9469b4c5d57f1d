"""Parts that all pages share: the frame, controls, tables, charts, messages."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nicegui import run, ui
from nicegui.element import Element

from bathysphere.errors import BathysphereError

STATIC = Path(__file__).parents[1] / "static"
PAGES = {"Runs": "/", "Watch": "/watch", "Search": "/search", "Unknown": "/unknown", "Studies": "/studies"}
_log = logging.getLogger("bathysphere.studio")


class Table(Element, component=str(STATIC / "table.js")):
    """A table that sorts and filters in the browser.

    Args:
      label: what it is, for those who cannot see it.
      columns: name by label; a name may begin with marks: `>` to the right, `!` as a tag, `@` opens the row, `.` a dot.
      choosable: whether rows have a box to tick.
      sortable: whether columns can be sorted.
      first: rows that are shown until one asks for the others.
      pointing: whether rows are actions by their number, which the board shows when one points at them.
      on_choose: called with the key of a row and whether it is ticked.
      on_open: called with the key of a row.
    """

    def __init__(
        self,
        label: str,
        columns: Mapping[str, str],
        *,
        choosable: bool = False,
        sortable: bool = False,
        pointing: bool = False,
        first: int = 100,
        on_choose: Callable[[str, bool], Any] | None = None,
        on_open: Callable[[str], Any] | None = None,
    ) -> None:
        super().__init__()
        self._props |= {
            "label": label,
            "choosable": choosable,
            "sortable": sortable,
            "pointing": pointing,
            "first": first,
        }
        self._props["columns"], self._props["rows"] = [_column(name, text) for name, text in columns.items()], []
        if on_choose is not None:
            self.on("choose", guarded(lambda e: on_choose(e.args["key"], e.args["on"])))
        if on_open is not None:
            self.on("open", guarded(lambda e: on_open(e.args)))

    def show(self, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str] | None = None) -> None:
        """Shows rows, each with a `key`; nothing is sent if they are the same as before."""
        if columns is not None:
            self._props["columns"] = [_column(name, text) for name, text in columns.items()]
        if self._props["rows"] != list(rows) or columns is not None:
            self._props["rows"] = list(rows)
            self.update()

    def filter_by(self, text: str) -> None:
        """Shows only rows that hold all words of `text`."""
        self._props["filter"] = text
        self.update()


class Choice(Element, component=str(STATIC / "choice.js")):
    """One of several values, by their labels."""

    def __init__(
        self, label: str, options: Mapping[str, str], value: str, on_pick: Callable[[str], Any] | None = None
    ) -> None:
        super().__init__()
        self._props["label"] = label
        self.on_pick = on_pick
        self.offer(options, value)
        self.on("pick", guarded(self._picked))

    @property
    def value(self) -> str:
        """What is chosen."""
        return str(self._props["value"])

    def offer(self, options: Mapping[str, str], value: str | None = None) -> None:
        """Offers other values; the chosen one stays if it can."""
        now = value if value is not None else str(self._props.get("value", ""))
        self._props["options"] = [{"value": key, "label": text} for key, text in options.items()]
        self._props["value"] = now if now in options else next(iter(options), "")
        self.update()

    def enable(self, on: bool) -> None:
        """Makes it possible or impossible to choose."""
        self._props["disabled"] = not on
        self.update()

    def _picked(self, event: Any) -> Any:
        self._props["value"] = str(event.args)
        return self.on_pick(str(event.args)) if self.on_pick is not None else None


class Slider(Element, component=str(STATIC / "slider.js")):
    """A number in a range; `names` are shown in place of the whole numbers from `low`."""

    def __init__(
        self, label: str, low: float, high: float, step: float, value: float, on_slide: Callable[[float], Any] | None
    ) -> None:
        super().__init__()
        self._props |= {"label": label, "step": step, "names": None}
        self.on_slide = on_slide
        self.range(low, high, value)
        self.on("slide", guarded(self._slid))

    @property
    def value(self) -> float:
        """The number."""
        return float(self._props["value"])

    def range(self, low: float, high: float, value: float, names: Sequence[str] | None = None) -> None:
        """Sets another range."""
        self._props |= {"low": low, "high": high, "value": min(max(value, low), high)}
        self._props["names"] = None if names is None else list(names)
        self.update()

    def _slid(self, event: Any) -> Any:
        self._props["value"] = float(event.args)
        return self.on_slide(float(event.args)) if self.on_slide is not None else None


@contextmanager
def frame(title: str, lead: str = "") -> Iterator[Element]:
    """Builds a page around what is made inside: navigation and a heading; yields a place beside the heading."""
    ui.page_title(f"{title} · Bathysphere")
    ui.add_head_html(f"<style>{(STATIC / 'studio.css').read_text('utf-8')}</style>")
    ui.add_head_html(f"<script>{(STATIC / 'studio.js').read_text('utf-8')}</script>")
    with ui.element("header").classes("top"):
        with ui.element("a").props('href="/" aria-label="Bathysphere studio"').classes("brand"):
            ui.element("img").props('src="/static/icon.svg" alt=""')
            text("Bathysphere")
        with ui.element("nav").props('aria-label="Pages"'):
            for name, path in PAGES.items():
                link(name, path, is_current=name == title or (name == "Unknown" and title == "What it does not know"))
        button("Light or dark", None, label="Switch between light and dark").on(
            "click", js_handler="() => switchTheme()"
        )
    with ui.element("div").classes("page"):
        with ui.element("div").classes("lead"):
            with ui.element("div").classes("grow"):
                text(title, "h1")
                if lead:
                    text(lead, "p", "muted")
            beside = ui.element("div").classes("row-of")
        yield beside


def text(content: str, tag: str = "span", classes: str = "") -> ui.label:
    """Puts text into an element of its own; it is never read as HTML."""
    label = ui.label(content).classes(classes)
    label.tag = tag
    return label


def link(name: str, path: str, *, is_current: bool = False, classes: str = "") -> Element:
    """Puts a link to another page."""
    with ui.element("a").classes(classes) as anchor:
        text(name)
    anchor.props["href"] = path
    if is_current:
        anchor.props["aria-current"] = "page"
    return anchor


def button(
    name: str, on_click: Callable[[], Any] | None, *, main: bool = False, label: str = "", classes: str = ""
) -> Element:
    """Puts a button."""
    with ui.element("button").classes("act main" if main else "act").classes(classes) as made:
        text(name)
    made.props["type"] = "button"
    if label:
        made.props["aria-label"] = label
    if on_click is not None:
        made.on("click", guarded(lambda _: on_click()))
    return made


def points_at(made: Element, action: int) -> None:
    """Has the board show an action while something else is pointed at."""
    for event in ("mouseenter", "focus"):
        made.on(event, js_handler=f"() => pointAt({action})")
    for event in ("mouseleave", "blur"):
        made.on(event, js_handler="() => pointAt(null)")


def enabled(made: Element, on: bool) -> None:
    """Lets a button be pressed, or not."""
    if on:
        made.props.pop("disabled", None)
    else:
        made.props["disabled"] = True
    made.update()


def entry(
    label: str,
    value: str = "",
    on_change: Callable[[str], Any] | None = None,
    *,
    on_enter: Callable[[], Any] | None = None,
    lines: bool = False,
    classes: str = "",
) -> Element:
    """Puts a field for text; its `props["value"]` is what was written last. `on_enter` is called for the Enter key."""
    with ui.element("label").classes("field").classes(classes):
        text(label)
        field = ui.element("textarea" if lines else "input")
    field.props["value"] = value
    if not lines:
        field.props["type"] = "text"
    field.props["spellcheck"] = "false"

    def written(event: Any) -> Any:
        field.props["value"] = str(event.args)
        return on_change(str(event.args)) if on_change is not None else None

    # Not throttled: a button pressed at once after the last letter must find it here.
    field.on("input", guarded(written), js_handler="(e) => emit(e.target.value)")
    if on_enter is not None:
        field.on("keydown.enter", guarded(lambda _: on_enter()))
    return field


def tick(label: str, value: bool, on_change: Callable[[bool], Any]) -> Element:
    """Puts a box to tick."""
    with ui.element("label").classes("tick"):
        box = ui.element("input")
        text(label)
    box.props.update({"type": "checkbox", "checked": value})

    def changed(event: Any) -> Any:
        box.props["checked"] = bool(event.args)
        return on_change(bool(event.args))

    box.on("change", guarded(changed), js_handler="(e) => emit(e.target.checked)")
    return box


@contextmanager
def card(heading: str = "", note: str = "") -> Iterator[Element]:
    """Puts a card, and in it what is made inside."""
    with ui.element("section").classes("card") as made:
        if heading:
            with ui.element("div"):
                text(heading, "h2")
                if note:
                    text(note, "p", "muted")
        yield made


def chart(label: str, options: dict[str, Any], *, height: int = 340, renderer: str = "svg") -> ui.echart:
    """Puts a chart; drawn as SVG it takes its colours from the page's, light or dark."""
    made = ui.echart(options, renderer="canvas" if renderer == "canvas" else "svg").classes("chart")
    made.props["role"], made.props["aria-label"] = "img", label
    return made.style(f"height: {height}px")


def draw(made: ui.echart, options: dict[str, Any]) -> None:
    """Shows other options in a chart, if they are others."""
    if made.options != options:
        made.options.clear()
        made.options.update(options)
        made.update()


def copy_button(numbers: Callable[[], str], name: str = "Copy numbers") -> Element:
    """Puts a button that copies the numbers behind a picture, as comma-separated text."""

    async def copy() -> None:
        await ui.run_javascript(f"copyText({_quoted(numbers())})")
        ui.notify("Copied as comma-separated text.")

    return button(name, copy)


def guarded(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a handler that tells in the page what went wrong, instead of failing."""

    @functools.wraps(handler)
    async def handle(event: Any) -> None:
        try:
            result = handler(event)
            if inspect.isawaitable(result):
                await result
        except BathysphereError as error:
            tell(str(error))
        except Exception as error:
            _log.exception("A page of the studio failed")
            tell(f"The studio has failed at this: {type(error).__name__}: {error}. The terminal shows where.")

    return handle


def every(seconds: float, look: Callable[[], Any], *, once: bool = False) -> ui.timer:
    """Calls `look` again and again while the page is open; what it raises is told in the page."""
    handle = guarded(lambda _: look())

    async def call() -> None:
        await handle(None)

    return ui.timer(seconds, call, once=once, immediate=not once)


def tell(sentence: str) -> None:
    """Shows a sentence for a while."""
    ui.notify(sentence, type="negative", multi_line=True, close_button="Close", timeout=12_000, position="bottom")


async def aside(work: Callable[..., Any], *arguments: Any) -> Any:
    """Runs something that takes a while in a thread, so that the page stays alive."""
    return await run.io_bound(work, *arguments)


def _column(name: str, label: str) -> dict[str, Any]:
    marks = name[: len(name) - len(name.lstrip(">!@."))]
    rest = name[len(marks) :]
    align = "right" if ">" in marks else "left"
    return {
        "name": rest,
        "label": label,
        "align": align,
        "tag": "!" in marks,
        "opens": "@" in marks,
        "dot": "." in marks,
    }


def _quoted(content: str) -> str:
    import json

    return json.dumps(content).replace("<", "\\u003c")
