"""The page of studies: the paper's numbers and ours, with figures, as runs come in."""

from __future__ import annotations

from urllib.parse import quote

from nicegui import ui

from bathysphere.studio.pages import parts
from bathysphere.studio.studio import Studio
from bathysphere.studio.study_view import StudyView, find_studies, study_csv

_COLUMNS = {
    "metric": "metric",
    "setting": "setting",
    ">paper": "paper",
    ">here": "here",
    ">interval": "95% interval",
    ">runs": "runs",
}
_LOOK_SECONDS = 3.0


def register(studio: Studio) -> None:
    """Makes the page known."""

    @ui.page("/studies")
    def studies() -> None:
        StudiesPage(studio)


class StudiesPage:
    """What one browser sees of the studies."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.shown: list[StudyView] = []
        with parts.frame(
            "Studies", f"Studies and sweeps in the folder {studio.folder.path.name}, the paper's numbers beside ours."
        ):
            self.none = parts.text("Looking for studies ...", "p", "muted")
            self.place = ui.element("div").classes("stack")
        parts.every(_LOOK_SECONDS, self._look)

    async def _look(self) -> None:
        found = await parts.aside(find_studies, self.studio.folder)
        missing = (
            f"There is no study in {self.studio.folder.path}. Run one: bathysphere reproduce deep-sea --out FOLDER"
        )
        self.none.set_text("" if found else missing)
        if found == self.shown:
            return
        self.shown = found
        self.place.clear()
        with self.place:
            for view in found:
                _show(view)


def _show(view: StudyView) -> None:
    with parts.card(view.title, view.about):
        if view.num_begun:
            going = (
                f", {view.num_running} {'is' if view.num_running == 1 else 'are'} running" if view.num_running else ""
            )
            with ui.element("div").classes("row-of middle"):
                parts.text(f"{view.num_finished} of {view.num_runs} runs have finished{going}.", "p", "muted")
                parts.link("Its runs", f"/?words={quote(view.name + '/runs/', safe='')}", classes="act")
        if view.command:
            parts.text(view.command, "code", "muted")
        if view.rows:
            has_paper = any(row["paper"] != "–" for row in view.rows)
            columns = {name: label for name, label in _COLUMNS.items() if has_paper or label != "paper"}
            parts.Table(f"Numbers of {view.title}", columns, sortable=True).show(view.rows)
            with ui.element("div").classes("row-of"):
                parts.copy_button(lambda: study_csv(view))
        for picture in view.pictures:
            address, about = f"/drawn/{quote(picture)}", f"Figure of {view.title}: {picture}"
            with ui.element("a").classes("scroll") as anchor:  # to see it alone, and larger
                image = ui.element("img").classes("figure")
            anchor.props["href"], anchor.props["target"] = address, "_blank"
            image.props["src"], image.props["alt"] = address, about
            image.props["loading"] = "lazy"
