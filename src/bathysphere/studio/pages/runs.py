"""The page of all runs: a table, their curves, what differs between them, and buttons to start and stop."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from nicegui import ui

from bathysphere.config.presets import PRESETS
from bathysphere.errors import BathysphereError
from bathysphere.studio.charts import colours_of, curves_chart
from bathysphere.studio.curves import METRICS, Curve, as_csv, curve_of, groups, mean_curve
from bathysphere.studio.folder import RunSummary, setting_differences
from bathysphere.studio.pages import parts
from bathysphere.studio.studio import Studio

_COLUMNS = {
    "@.name": "run",
    "!state": "state",
    "world": "world",
    ">seed": "seed",
    ">steps": "steps",
    ">episodes": "episodes",
    ">won": "won lately",
    ">solved": "solved at",
    ">speed": "steps/s",
}
_SHOWN_AT_FIRST = 3
_LOOK_SECONDS = 2.0
_HEIGHT = 340  # of the curves, in pixels
_PRELOAD = (
    '<script>addEventListener("load", () => import("nicegui-echart"))</script>'  # as soon as the table is painted
)


def register(studio: Studio) -> None:
    """Makes the page known."""

    @ui.page("/")
    def runs(words: str = "") -> None:
        RunsPage(studio, words)


class RunsPage:
    """What one browser sees of the runs; only those that hold all of some words, if there are any."""

    def __init__(self, studio: Studio, words: str = "") -> None:
        self.studio = studio
        all_runs = studio.folder.runs()
        runs = [run for run in all_runs if all(word in run.name for word in words.split())] or all_runs
        newest = sorted(runs, key=lambda run: run.state != "running")[:_SHOWN_AT_FIRST]
        self.chosen = {run.name for run in newest if run.state != "damaged"}
        self.opened: str | None = None
        self.curves: list[Curve] = []
        self.labels: list[str] = []  # in the legend
        self.smoothing, self.by_group = 0.0, True
        ui.add_head_html(_PRELOAD)
        with parts.frame("Runs", f"All runs in the folder {studio.folder.path.name}.") as beside:
            with beside:
                parts.button("Start a run", self._ask, main=True)
            self.form = self._make_form()
            none = "There are no runs here yet. Start one, or look at an agent that comes with the package."
            self.none = parts.text(none, "p")
            with parts.card():
                parts.entry("Filter", words, on_change=lambda words: self.table.filter_by(words), classes="wide")
                self.table = parts.Table(
                    "Runs", _COLUMNS, choosable=True, sortable=True, on_choose=self._choose, on_open=self._open
                )
            with ui.element("section").classes("card") as self.about:
                pass
            self.about.set_visibility(False)
            with parts.card(
                "Curves", "Tick runs above to compare them. A band is the 95% interval of the mean over seeds."
            ):
                with ui.element("div").classes("row-of"):
                    self.metric = parts.Choice("Metric", METRICS, "win_rate_100", lambda _: self._draw())
                    parts.Slider("Smoothing", 0, 0.98, 0.02, 0, self._smooth)
                    parts.tick("One curve for all seeds", True, self._group)
                    parts.copy_button(lambda: as_csv(self.curves))
                self.place = ui.element("div").style(f"min-height: {_HEIGHT}px")
                self.chart: ui.echart | None = None  # until the table is painted: its library takes a while to load
                self.legend = ui.element("div").classes("legend")
            with parts.card("Different settings", "Of the runs that are ticked.") as self.differences:
                self.settings = parts.Table("Settings in which the chosen runs differ", {"name": "setting"}, first=15)
                self.same = parts.text("", "p", "muted")
        self.table.filter_by(words)
        self._show_table()
        parts.every(_LOOK_SECONDS, self._look)

    def _make_form(self) -> Any:
        note = "It goes on when this page is closed."
        with parts.card("Start a run", note) as form, ui.element("div").classes("row-of"):
            self.what = parts.entry("Preset or world", "deep-sea", classes="wide")
            self.what.props["list"] = "presets"
            with ui.element("datalist") as offered:
                for preset in PRESETS:
                    ui.element("option").props["value"] = preset
            offered.props["id"] = "presets"
            self.options = parts.entry("Options", "--steps 20000 --seed 0", on_enter=self._start, classes="wide")
            self.name = parts.entry("Name (free to choose)", on_enter=self._start, classes="wide")
            parts.button("Start", self._start, main=True)
            parts.button("Cancel", self._ask)
        form.set_visibility(False)
        return form

    def _ask(self) -> None:
        self.form.set_visibility(not self.form.visible)

    async def _start(self) -> None:
        told = [str(field.props["value"]) for field in (self.what, self.options, self.name)]
        name = await parts.aside(self.studio.trainings.start, *told)
        self.form.set_visibility(False)
        self.chosen = {name}
        ui.notify(f"{name} is starting.")

    async def _look(self) -> None:
        """Looks at the folder again, and shows what has changed."""
        await parts.aside(self.studio.folder.runs)
        self._show_table()
        await self._draw()
        if self.opened is not None:
            self._show_opened()
        failed = self.studio.trainings.failures()
        if failed:
            raise BathysphereError(" ".join(f"{name} has failed. {said}" for name, said in failed.items()))

    def _runs(self) -> list[RunSummary]:
        return [run for run in self.studio.folder.runs() if run.name in self.chosen]

    def _show_table(self) -> None:
        colours, runs = self._colours(), self.studio.folder.runs()
        self.none.set_visibility(not runs)
        self.table.show([_row(run, run.name in self.chosen, colours) for run in runs])

    def _colours(self) -> dict[str, str]:
        """Returns the colour of each chosen run's curve."""
        parts = groups(self._runs()) if self.by_group else {run.name: [run] for run in self._runs()}
        return {run.name: colour for label, colour in colours_of(list(parts)).items() for run in parts[label]}

    async def _choose(self, name: str, on: bool) -> None:
        (self.chosen.add if on else self.chosen.discard)(name)
        self._show_table()
        await self._draw()

    async def _smooth(self, weight: float) -> None:
        self.smoothing = weight
        await self._draw()

    async def _group(self, on: bool) -> None:
        self.by_group = on
        self._show_table()
        await self._draw()

    async def _draw(self) -> None:
        metric = self.metric.value
        self.curves = await parts.aside(self._compute, metric, self._runs())
        if self.chart is None:
            with self.place:
                self.chart = parts.chart("Curves of the chosen runs", {}, height=_HEIGHT)
        parts.draw(self.chart, curves_chart(self.curves, METRICS[metric], metric.startswith("win_rate")))
        self._show_legend([curve.label for curve in self.curves])
        self._show_differences()

    def _show_legend(self, labels: list[str]) -> None:
        if labels == self.labels:
            return
        self.labels = labels
        self.legend.clear()
        with self.legend:
            for label, colour in colours_of(labels).items():
                with ui.element("span"):
                    ui.element("span").classes("dot").style(f"background: {colour}")
                    parts.text(label)

    def _compute(self, metric: str, runs: list[RunSummary]) -> list[Curve]:
        parts = groups(runs) if self.by_group else {run.name: [run] for run in runs}
        curves = []
        for label, group in parts.items():
            rows = []
            for run in group:
                try:
                    rows.append(self.studio.folder.rows(run.name))
                except BathysphereError:  # deleted meanwhile
                    continue
            curves.append(mean_curve(label, [curve_of(label, each, metric, self.smoothing) for each in rows]))
        return curves

    def _show_differences(self) -> None:
        runs = self._runs()
        found = sorted(setting_differences(runs), key=lambda told: None in told[1])  # first what all of them have
        columns = {"name": "setting", **{f"run{i}": run.name for i, run in enumerate(runs)}}
        rows = [
            {"key": name, "name": name, **{f"run{i}": _told(value) for i, value in enumerate(values)}}
            for name, values in found
        ]
        if rows != self.settings._props["rows"]:
            self.settings.show(rows, columns)
        self.settings.set_visibility(bool(rows))
        self.same.set_text("" if rows else "Nothing differs." if len(runs) > 1 else "Tick two runs or more.")

    def _open(self, name: str) -> None:
        self.opened = None if self.opened == name else name
        self.about.set_visibility(self.opened is not None)
        self._shown: Any = None
        if self.opened is not None:
            self._show_opened()

    def _show_opened(self) -> None:
        """Shows what is known of one run, and what can be done with it."""
        assert self.opened is not None
        try:
            run = self.studio.folder.find(self.opened)
        except BathysphereError as error:
            self.opened = None
            self.about.set_visibility(False)
            raise BathysphereError(f"{error} It was deleted or moved.") from error
        if run == self._shown:
            return
        self._shown = run
        self.about.clear()
        with self.about:
            parts.text(run.name, "h2")
            if run.state == "damaged":
                parts.text(
                    "Its config or result cannot be read: it is damaged, or another version wrote it.", "p", "bad"
                )
            with ui.element("div").classes("facts"):
                for name, value in _facts(run):
                    parts.text(name)
                    parts.text(value)
            with ui.element("div").classes("row-of middle"):
                agent = quote(run.name, safe="")
                parts.link("Watch it", f"/watch?agent={agent}", classes="act")
                parts.link("What it does not know", f"/unknown?agent={agent}", classes="act")
                is_running = run.state == "running"
                parts.enabled(parts.button("Stop", lambda: self.studio.trainings.stop(run.name)), is_running)
                can_resume = run.state in ("unfinished", "interrupted")
                parts.enabled(parts.button("Resume", lambda: self.studio.trainings.resume(run.name)), can_resume)


def _row(run: RunSummary, is_chosen: bool, colours: dict[str, str]) -> dict[str, Any]:
    tone = {"running": "running", "damaged": "bad", "unfinished": "warn", "interrupted": "warn"}.get(run.state, "")
    return {
        "key": run.name,
        "chosen": is_chosen,
        "colour": colours.get(run.name),
        "name": run.name,
        "world": run.world,
        "state": "finished" if run.is_finished else run.state,
        "tone": tone,
        "seed": "–" if run.seed is None else str(run.seed),
        "steps": f"{run.env_steps:,}",
        "episodes": f"{run.episodes:,}",
        "won": "–" if run.win_rate is None or run.state == "damaged" else f"{run.win_rate:.0%}",
        "solved": "–" if run.solved_step is None else f"{run.solved_step:,}",
        "speed": "–" if run.steps_per_second is None else f"{run.steps_per_second:,.0f}",
        "sort": {
            "steps": run.env_steps,
            "episodes": run.episodes,
            "won": run.win_rate,
            "solved": run.solved_step,
            "speed": run.steps_per_second,
        },
    }


def _facts(run: RunSummary) -> list[tuple[str, str]]:
    steps = f"{run.env_steps:,}" if run.total_steps is None else f"{run.env_steps:,} of {run.total_steps:,}"
    return [
        ("World", run.world),
        ("Preset", run.preset),
        ("State", f"finished ({run.state.replace('_', ' ')})" if run.is_finished else run.state),
        ("Steps", steps),
        ("Solved at", "not yet" if run.solved_step is None else f"step {run.solved_step:,}"),
    ]


def _told(value: Any) -> str:
    return "–" if value is None else str(value)
