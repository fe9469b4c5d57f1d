"""`bathysphere reproduce`: run one of the paper's tables or figures again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from bathysphere.cli.common import parse, say, with_address
from bathysphere.errors import BathysphereError
from bathysphere.runs.display import duration
from bathysphere.storage.versions import describe_machine
from bathysphere.studies import STUDIES, find_study
from bathysphere.studies.cost import mean_speed, measured_before, most_steps
from bathysphere.studies.folder import StudyFolder
from bathysphere.studies.report import markdown_table, render
from bathysphere.studies.running import failures, num_processes, run_study
from bathysphere.studies.study import BudgetName, Study

_DESCRIPTION = """Run one of the paper's tables or figures again, and put the paper's numbers beside ours.

Runs go on side by side, one thread each. Interrupt it and repeat the command: finished runs are kept, half-finished
ones go on where they were. The same command gives the same numbers, on the same kind of processor.

Examples:

bathysphere reproduce --list

bathysphere reproduce deep-sea --jobs 4

bathysphere reproduce toy-montezuma --budget paper --seeds 10 --out results/toy-montezuma

bathysphere reproduce toy-montezuma --out results/toy-montezuma --render
"""


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere reproduce`."""

    study: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="STUDY")] = ""
    """Name of the study; --list shows them."""
    seeds: int | None = None
    """Runs of every setting (boards, for Sokoban). None: as the budget says."""
    jobs: int | None = None
    """Runs side by side. None: one for every core."""
    ray: str | None = None
    """Let them run on Ray: --ray for one on this machine, --ray HOST:PORT for a cluster, whose machines must see the
    folder of the results."""
    budget: BudgetName = "small"
    """small: a laptop and an evening at most; paper: as long as the paper's runs."""
    out: Path | None = None
    """Folder of the results. None: studies/STUDY-BUDGET."""
    render: bool = False
    """Only make the table, figures and report again, from the raw results in the folder."""
    list: bool = False
    """List the studies (or the one named): what each is, the paper's numbers, and what it costs."""
    measure: bool = False
    """With --list: measure this machine's speed for the costs, which takes minutes. Otherwise: as measured before."""
    json: bool = False
    """Print one JSON object (what summary.json holds) on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere reproduce <argv>` and returns the exit code: 1 if a run failed."""
    options = parse(Options, with_address(argv), "reproduce", _DESCRIPTION)
    jobs = num_processes(options.jobs)
    if options.list:
        studies = [find_study(options.study)] if options.study else list(STUDIES.values())
        return _list_studies(studies, jobs, options.measure, options.json)
    if options.measure:
        raise BathysphereError("--measure goes with --list; add it.")
    if not options.study:
        raise BathysphereError(
            f"'bathysphere reproduce' needs a study: {', '.join(STUDIES)}. "
            "'bathysphere reproduce --list' explains them."
        )
    study = find_study(options.study)
    folder = StudyFolder(options.out or Path("studies") / f"{study.name}-{options.budget}")
    num_failed = 0
    if not options.render:
        seeds = options.seeds or study.budgets[options.budget].seeds
        command = f"bathysphere reproduce {study.name} --budget {options.budget} --seeds {seeds}"
        num_failed = run_study(study, folder, options.budget, command, seeds=options.seeds, jobs=jobs, ray=options.ray)
    summary = render(study, folder)
    text = f"{markdown_table(study.summarise(folder.load()[1]))}\nThe report is {folder.report_file}"
    if num_failed:
        text += f"\n{failures(num_failed)}"
    say(summary, text, options.json)
    return 1 if num_failed else 0


def _list_studies(studies: Sequence[Study], jobs: int, measure: bool, as_json: bool) -> int:
    if measure and not as_json:
        sys.stderr.write("Measuring the speed of this machine ...\n")
    speeds: dict[Any, float] | None = {} if measure else None
    entries = [_describe(study, jobs, speeds) for study in studies]
    machine = describe_machine() if measure else measured_before()["machine"]
    lines = []
    for entry in entries:
        lines += [f"{entry['study']}: {entry['title']} ({entry['source']})"]
        lines += [f"    paper: {', '.join(entry['paper'])}"] if entry["paper"] else []
        for name, cost in entry["budgets"].items():
            seconds = cost["seconds"]
            time = "time not measured yet" if seconds is None else f"at most {duration(seconds)} with {jobs} jobs"
            lines.append(f"    {name}: {cost['runs']} runs, {time}. {cost['about']}")
        lines.append("")
    if measure:
        lines.append(f"Times are for this machine ({machine}), measured now.")
    else:
        lines.append(f"Times are of earlier runs ({machine}); --measure measures this machine.")
    say({"machine": machine, "measured_now": measure, "studies": entries}, "\n".join(lines), as_json)
    return 0


def _describe(study: Study, jobs: int, speeds: dict[Any, float] | None) -> dict[str, Any]:
    titles = {setting.name: setting.title for setting in study.settings}
    metrics = {metric.name: metric.title for metric in study.metrics}
    return {
        "study": study.name,
        "title": study.title,
        "source": study.source,
        "about": study.about,
        "paper": [f"{titles[s]}: {number.text} {metrics[m]}" for (s, m), number in study.paper.items()],
        "budgets": {name: _cost(study, name, jobs, speeds) for name in study.budgets},
    }


def _cost(study: Study, budget: str, jobs: int, speeds: dict[Any, float] | None) -> dict[str, Any]:
    """Returns the runs of a budget and their time, with speeds measured now, or before if `speeds` is None."""
    trials = study.trials(budget)
    if speeds is None:
        speed = measured_before()["env_steps_per_second"].get(study.name, {}).get(budget)
    else:
        speed = mean_speed(trials, speeds)
    return {
        "about": study.budgets[budget].about,
        "runs": len(trials),
        "env_steps_per_second": speed,
        "seconds": None if speed is None else sum(map(most_steps, trials)) / speed / jobs,
    }
