"""The page of studies: the paper's numbers and ours, with figures, as runs come in."""

from __future__ import annotations

from urllib.parse import quote

from nicegui import ui

from bathysphere.studio.pages.parts import Table, aside, card, copy_button, every, frame, link, text
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
        with frame(
            "Studies", f"Studies and sweeps in the folder {studio.folder.path.name}, the paper's numbers beside ours."
        ):
            self.none = text("Looking for studies ...", "p", "muted")
            self.place = ui.element("div").classes("stack")
        every(_LOOK_SECONDS, self._look)

    async def _look(self) -> None:
        found = await aside(find_studies, self.studio.folder)
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
    with card(view.title, view.about):
        if view.num_begun:
            going = (
                f", {view.num_running} {'is' if view.num_running == 1 else 'are'} running" if view.num_running else ""
            )
            with ui.element("div").classes("row-of middle"):
                text(f"{view.num_finished} of {view.num_runs} runs have finished{going}.", "p", "muted")
                link("Its runs", f"/?words={quote(view.name + '/runs/', safe='')}", classes="act")
        if view.command:
            text(view.command, "code", "muted")
        if view.rows:
            Table(f"Numbers of {view.title}", _COLUMNS, sortable=True).show(view.rows)
            with ui.element("div").classes("row-of"):
                copy_button(lambda: study_csv(view))
        for picture in view.pictures:
            image = ui.element("img").classes("figure")
            image.props["src"], image.props["alt"] = f"/drawn/{quote(picture)}", f"Figure of {view.title}: {picture}"
            image.props["loading"] = "lazy"
