"""The Python version of `bathysphere sweep`."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bathysphere.config.convert import override
from bathysphere.config.run import RunConfig
from bathysphere.config.start import find_start
from bathysphere.errors import BathysphereError
from bathysphere.runs.collection import Runs, runs
from bathysphere.runs.run import frame
from bathysphere.storage.plain import merge, to_plain
from bathysphere.studies.folder import StudyFolder
from bathysphere.studies.report import markdown_table, render
from bathysphere.studies.running import failures, run_study
from bathysphere.studies.study import Record, Study
from bathysphere.studies.sweep import BUDGET, Chosen, Vary, check_vary, default_folder, first_domain, make_sweep

if TYPE_CHECKING:
    import pandas


class Sweep:
    """What a sweep has left behind. Prints as its table; the report is `report.html` in its `path`.

    Args:
      study: what was run.
      folder: where.
    """

    def __init__(self, study: Study, folder: StudyFolder) -> None:
        self._study, self.path = study, folder.path
        self.summary: dict[str, Any] = render(study, folder)
        """What `summary.json` holds: an estimate with its 95% interval for every setting and metric in `rows`."""
        self.records: list[Record] = folder.load()[1]
        """What `results.csv` holds: a row for every run, with the values that were varied."""

    @property
    def runs(self) -> Runs:
        """The runs themselves."""
        return runs(self.path / "runs")

    def frame(self) -> pandas.DataFrame:
        """Returns the records as a pandas frame."""
        return frame([{name: cell for name, cell in record.items() if name != "curve"} for record in self.records])

    def __repr__(self) -> str:
        return markdown_table(self._study.summarise(self.records), has_paper=False)


def sweep(
    what: Any,
    /,
    vary: Vary,
    *,
    seeds: int = 3,
    jobs: int | None = None,
    out: str | PathLike[str] | None = None,
    show: bool = False,
    ray: bool | str = False,
    **overrides: Any,
) -> Sweep:
    """Trains every combination of some settings with several seeds, side by side in processes, and compares them.

    Interrupted and called again it goes on: finished runs are kept. In a script, call it under
    `if __name__ == "__main__":`, for a world that is defined in that script is imported from it.

    Args:
      what: name of a preset; a world, as `train` takes it, that other processes can import; or a whole config.
      vary: values to try, by dotted name of the field: `{"search.risk_coef": [0, 1, 3]}`.
      seeds: runs of every setting, with the seeds 0, 1, 2, ...
      jobs: runs side by side; one for every core if not given.
      out: folder of the results; `sweeps/PRESET-FIELDS` if not given.
      show: whether to show progress in the terminal.
      ray: let runs go on on Ray, one on this machine, or the cluster at this address, which must see `out`.
      **overrides: fields of the config to change in all runs, as for `train`.

    Raises:
      BathysphereError: for bad settings before anything runs, and if runs failed, after all others.
    """
    domain = to_plain(overrides.pop("domain", None) or {})
    if "seed" in overrides:
        raise BathysphereError("Every setting has the seeds 0, 1, 2, ...; say how many with seeds, and leave out seed.")
    check_vary(vary, seeds)
    config = override(find_start(what, merge(domain, first_domain(vary)) or None).config, overrides)
    path = default_folder(config.preset, vary) if out is None else Path(out)
    chosen = Chosen(path)

    def make(varied: dict[str, Any]) -> RunConfig:
        start = chosen.settle(find_start(what, merge(domain, varied) or None))
        return override(start.config, overrides)

    study = make_sweep(config.preset, make, vary, seeds)
    chosen.save()
    folder = StudyFolder(path)
    address = ("local" if ray is True else ray) or None
    command = f"bathysphere.sweep({config.preset!r}, {dict(vary)!r}, seeds={seeds})"
    num_failed = run_study(study, folder, BUDGET, command, seeds=seeds, jobs=jobs, show=show, ray=address)
    done = Sweep(study, folder)
    if num_failed:
        raise BathysphereError(f"{failures(num_failed)} {folder.report_file} has the reasons.")
    return done
