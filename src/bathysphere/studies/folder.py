"""The folder of a study: its runs, its raw results, and what is made from these."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bathysphere.errors import BathysphereError
from bathysphere.storage.files import read_json, write_json, writing
from bathysphere.studies.records import read_records, write_records
from bathysphere.studies.scheduler import Job, plan
from bathysphere.studies.study import Record, Study, Trial, run_folder

_ABOUT = ("study", "budget", "command")
ADVICE = "Free some space or choose another --out, then repeat the command."


class StudyFolder:
    """Where the files of a study are.

    Raw are `results.csv`, `curves.csv`, and what `summary.json` says of study, budget and command.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = path / "runs"
        self.records_file = path / "results.csv"
        self.curves_file = path / "curves.csv"
        self.table_file = path / "table.md"
        self.summary_file = path / "summary.json"
        self.report_file = path / "report.html"
        self._old_about_file = path / "study.json"  # where earlier versions noted study, budget and command

    def begin(self, study: Study, budget: str, command: str, trials: Sequence[Trial]) -> list[Job]:
        """Notes what is about to be run, and returns it; what is finished is recognised, by its run or by its row.

        Raises:
          BathysphereError: if the folder is of something else, or holds results that `save` would lose.
        """
        about = self._about()
        if about is not None and (about["study"], about["budget"]) != (study.name, budget):
            raise BathysphereError(
                f"{self.path} holds the study {about['study']} with the {about['budget']} budget; choose another --out."
            )
        finished = [r for r in self._records() if r["state"] == "finished"] if self.records_file.is_file() else []
        rows = {run_folder(r["setting"], r["case"], r["seed"]): r for r in finished}
        drawn = [(picture.setting, picture.case) for picture in study.pictures]
        jobs = plan(trials, self.runs, drawn, rows)
        self._check_kept(rows, jobs)
        with writing(self.path, "Choose another --out."):
            self.runs.mkdir(parents=True, exist_ok=True)
        about = {"study": study.name, "command": command, "budget": budget, "num_runs": len(trials)}
        write_json(self.summary_file, about)
        return jobs

    def _check_kept(self, rows: Iterable[Path], jobs: Sequence[Job]) -> None:
        """Refuses to lose results: each must be that of a job, or of a run that is here and that a job continues."""
        kept = {job.trial.folder for job in jobs if job.row is not None or job.path.is_dir()}
        lost = [place for place in rows if place not in kept]
        if lost:
            raise BathysphereError(
                f"{self.records_file} has results of {len(lost)} runs that this command would lose, such as {lost[0]}: "
                f"it does not include them, or with other settings, and they are not in {self.runs}. Choose another "
                "--out to run the study, or add --render to make the table, figures and report of these results again."
            )

    def save(self, study: Study, jobs: Sequence[Job]) -> None:
        """Writes the raw results of all runs that have ended, and keeps the pictures that the report shows."""
        records = [job.record() for job in jobs if job.state in ("finished", "failed")]
        with writing(self.path, ADVICE):
            write_records(records, self.records_file, self.curves_file if study.curve else None)
            for picture in study.pictures:
                for job in jobs:
                    drawn = job.path / "pictures" / picture.file
                    if job.pictures and job.trial.setting == picture.setting and drawn.is_file():
                        shutil.copyfile(drawn, self.path / f"{picture.setting}-{picture.file}")

    def load(self) -> tuple[dict[str, Any], list[Record]]:
        """Returns what was run (`study`, `budget` and `command`), and the raw results."""
        about = self._about()
        if about is None or not self.records_file.is_file():
            raise BathysphereError(
                f"{self.path} holds no results of a study ({self.records_file.name} and "
                f"{self.summary_file.name}). Run it first, without --render."
            )
        return about, self._records()

    def _about(self) -> dict[str, Any] | None:
        for file in (self.summary_file, self._old_about_file):
            if file.is_file():
                about = read_json(file)
                if not isinstance(about, dict) or not all(isinstance(about.get(name), str) for name in _ABOUT):
                    raise BathysphereError(f"{file} does not say {', '.join(_ABOUT)} of a study; it is damaged.")
                return about
        return None

    def _records(self) -> list[Record]:
        return read_records(self.records_file, self.curves_file)
