"""What a study is: settings that are compared, what varies between runs, what is measured, and the paper's numbers.

All of it is data, so that a new study is one small file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bathysphere.config.convert import from_dict, to_dict
from bathysphere.config.presets import find_preset
from bathysphere.config.run import RunConfig
from bathysphere.errors import BathysphereError
from bathysphere.storage.plain import merge
from bathysphere.studies.statistics import Estimate, Kind, estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Changes = Mapping[str, Any]  # fields of a RunConfig, nested ones as mappings
Record = dict[str, Any]  # a run's row of the raw results: what identifies it, and what its result.json holds
BudgetName = Literal["small", "paper"]


@dataclass(frozen=True)
class Towers:
    """Runs that others are built on: run i on the values of runs i, i + 1, ... of a setting, in the same case."""

    setting: str
    count: int


@dataclass(frozen=True)
class Setting:
    """One of the things that are compared."""

    name: str  # as in file names and summaries
    title: str  # as in tables and figures
    preset: str | RunConfig  # a preset by name, or a config of its own, which budgets then leave as it is
    changes: Changes = field(default_factory=dict)
    towers: Towers | None = None  # finished first, and as many as `values.num_towers` then is
    values: Mapping[str, Any] = field(default_factory=dict)  # join the raw results


@dataclass(frozen=True)
class Case:
    """One of the problems that every setting is run on, such as a size; `values` join the raw results."""

    name: str = ""
    changes: Changes = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Budget:
    """How much is run."""

    about: str  # one sentence
    seeds: int  # of every setting and case
    changes: Changes
    cases: tuple[Case, ...] = (Case(),)
    presets: Mapping[str, str] = field(default_factory=dict)  # what is run in place of some of the settings' presets
    only: Mapping[str, Changes] = field(default_factory=dict)  # further changes in some settings, by name
    evaluation: int = 0  # episodes that each run plays afterwards without learning; those that are towers play none


@dataclass(frozen=True)
class Metric:
    """A number that each run gives, and how runs are summarised."""

    name: str
    title: str
    kind: Kind
    value: Callable[[Record], float | None]  # None: the run does not count for this metric
    settings: tuple[str, ...] | None = None  # those it is for; all if None


# In the table of every study whose runs counted returns, which those of version 0.1 did not.
RETURN = Metric("return", "return at the end, mean of the last 50", "return", lambda r: r.get("return_mean_50"))


@dataclass(frozen=True)
class PaperNumber:
    """What the paper reports."""

    value: float
    text: str  # as printed there
    source: str


@dataclass(frozen=True)
class Picture:
    """A picture that the first run of a setting draws, shown in the report."""

    setting: str
    case: str
    file: str  # in the run's pictures/
    caption: str


def run_folder(setting: str, case: str, seed: int) -> Path:
    """Returns where a run is, inside the study's runs."""
    return Path(setting) / "-".join(filter(None, (case, f"seed{seed}")))


@dataclass(frozen=True)
class Trial:
    """One run of a study."""

    setting: str
    case: Case
    seed: int
    config: RunConfig
    towers: tuple[Path, ...] = ()  # folders of the runs that it is built on
    evaluation: int = 0  # episodes to play afterwards
    curve: tuple[str, ...] = ()  # columns of the metrics to keep
    values: Mapping[str, Any] = field(default_factory=dict)  # of the setting, for the raw results

    @property
    def folder(self) -> Path:
        """Where the run goes, inside the study's runs."""
        return run_folder(self.setting, self.case.name, self.seed)

    def identity(self) -> Record:
        """Returns the columns of the raw results that say which run it is."""
        return {
            "setting": self.setting,
            **self.values,
            "case": self.case.name,
            **self.case.values,
            "seed": self.seed,
        }


def by_seed(config: RunConfig, seed: int) -> RunConfig:
    """Runs differ in their seed only."""
    return replace(config, seed=seed)


@dataclass(frozen=True)
class Study:
    """One of the paper's tables or figures, or a comparison of one's own."""

    name: str
    title: str
    source: str  # where in the paper; empty if it is not from there
    about: str  # what is compared, and what the paper found
    settings: tuple[Setting, ...]
    metrics: tuple[Metric, ...]
    budgets: Mapping[str, Budget]
    figure: Callable[[Study, list[Record]], Figure]
    paper: Mapping[tuple[str, str], PaperNumber] = field(default_factory=dict)  # by (setting, metric)
    vary: Callable[[RunConfig, int], RunConfig] = by_seed  # the config of run number i
    pictures: tuple[Picture, ...] = ()
    curve: tuple[str, ...] = ()  # columns of the metrics that a run's record keeps, as lists, in its "curve"

    def trials(self, budget: str, seeds: int | None = None) -> list[Trial]:
        """Returns all runs: settings x cases x seeds, and the runs they are built on, before them.

        One seed of everything comes first, so that results even out.
        """
        chosen = self.budgets[budget]
        count = chosen.seeds if seeds is None else seeds
        if count < 1:
            raise BathysphereError(f"--seeds is {count}; expected at least 1.")
        configs = {
            (case.name, setting.name): _config(setting, chosen, case)
            for case in chosen.cases
            for setting in self.settings
        }
        named = {setting.name: setting for setting in self.settings}
        foundations = {setting.towers.setting for setting in self.settings if setting.towers}
        trials: dict[Path, Trial] = {}

        def add(setting: Setting, case: Case, seed: int) -> Path:
            towers: tuple[Path, ...] = ()
            if setting.towers is not None:
                below = named[setting.towers.setting]
                towers = tuple(add(below, case, seed + i) for i in range(setting.towers.count))
            config = self.vary(configs[case.name, setting.name], seed)
            evaluation = 0 if setting.name in foundations else chosen.evaluation
            trial = Trial(setting.name, case, seed, config, towers, evaluation, self.curve, setting.values)
            trials.setdefault(trial.folder, trial)
            return trial.folder

        for seed in range(count):
            for case in chosen.cases:
                for setting in self.settings:
                    add(setting, case, seed)
        return list(trials.values())

    def summarise(self, records: list[Record]) -> list[SummaryRow]:
        """Returns one row for every metric and setting that it is for; failed runs do not count."""
        rows, metrics = [], self.metrics
        if RETURN not in metrics and any(RETURN.value(record) is not None for record in records):
            metrics = (*metrics, RETURN)
        for metric in metrics:
            for setting in self.settings:
                if metric.settings is not None and setting.name not in metric.settings:
                    continue
                mine = [r for r in records if r["setting"] == setting.name and r["state"] == "finished"]
                values = [v for v in map(metric.value, mine) if v is not None]
                number = self.paper.get((setting.name, metric.name))
                rows.append(SummaryRow(setting, metric, estimate(values, metric.kind), number))
        return rows


def _config(setting: Setting, budget: Budget, case: Case) -> RunConfig:
    if isinstance(setting.preset, RunConfig):
        return setting.preset
    plain = to_dict(find_preset(budget.presets.get(setting.preset, setting.preset)))
    plain["checkpoint"]["keep"] = 1
    if setting.towers is not None:
        plain["values"]["num_towers"] = setting.towers.count
    for changes in (setting.changes, budget.changes, budget.only.get(setting.name, {}), case.changes):
        plain = merge(plain, dict(changes))
    config = from_dict(plain)
    # A learning curve needs no more than a hundred rows.
    return replace(config, log_every=max(1, config.steps // 100))


@dataclass(frozen=True)
class SummaryRow:
    """One number of ours beside the paper's."""

    setting: Setting
    metric: Metric
    ours: Estimate
    paper: PaperNumber | None

    def to_dict(self) -> dict[str, Any]:
        """Returns the row as `summary.json` holds it."""
        return {
            "setting": self.setting.name,
            "metric": self.metric.name,
            "n": self.ours.n,
            "value": self.ours.value,
            "low": self.ours.low,
            "high": self.ours.high,
            "paper": self.paper.value if self.paper else None,
        }


def number_text(value: float | None, kind: Kind) -> str:
    """Writes a number for people: shares as percentages, large numbers without decimals.

    >>> number_text(0.81, "share"), number_text(17.54, "mean"), number_text(475200.0, "median")
    ('81%', '17.5', '475,200')
    >>> number_text(0.9933, "return"), number_text(-13.0, "return")
    ('0.993', '-13')
    """
    if value is None:
        return "–"
    if kind in ("share", "rate"):
        return f"{value:.0%}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if kind == "return" else f"{value:.1f}"


def interval_text(ours: Estimate, kind: Kind) -> str:
    """Writes an interval for people."""
    if ours.low is None:
        return "–"
    return f"{number_text(ours.low, kind)} to {number_text(ours.high, kind)}"
