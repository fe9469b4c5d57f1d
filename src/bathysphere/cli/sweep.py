"""`bathysphere sweep`: vary settings, and compare what comes out."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from bathysphere.cli.common import say, with_address
from bathysphere.cli.run_flags import SHOWN, RunOptions, Verb, flag_values, read_run
from bathysphere.config.run import RunConfig
from bathysphere.config.start import explained
from bathysphere.errors import BathysphereError
from bathysphere.studies.folder import StudyFolder
from bathysphere.studies.report import markdown_table, render
from bathysphere.studies.running import failures, run_study
from bathysphere.studies.sweep import BUDGET, Chosen, check_vary, default_folder, first_domain, make_sweep, parse_vary
from bathysphere.terminal import columns_of

_DESCRIPTION = """Vary settings of a preset or of a world of yours, and compare what comes out.

bathysphere sweep PRESET --vary FIELD=VALUE,VALUE [OPTIONS]

bathysphere sweep WORLD --vary FIELD=VALUE,VALUE [OPTIONS]

Every combination of the values is run with the seeds 0, 1, 2, ..., side by side, one thread each. Fields are those of
config.json with dots between them, and planner; settings of the world are domain....; all options of train that
describe a run are options here. The folder then has a report, a table, a figure, and the raw results as CSV.

Interrupt it and repeat the command: finished runs are kept, half-finished ones go on where they were. More values or
more seeds go on in the same folder.

Examples:

bathysphere sweep deep-sea --vary search.risk_coef=0,1,10 --seeds 5 --stop.on-solved

bathysphere sweep deep-sea --vary domain.size=10,20,30 --vary values.num_members=10,20 --steps 100000

bathysphere sweep my_world:MyWorld --vary search.risk_coef=0,1,3 --vary domain.size=4,8 --stop.seconds 60

bathysphere sweep gymnasium:CliffWalking-v1 --vary search.passes=5,20 --steps 20000 --out sweeps/cliff
"""


@dataclass(frozen=True)
class Options(RunOptions):
    """Options of `bathysphere sweep`: what is varied, how often it is run, and the config."""

    vary: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """A field and its values: search.risk_coef=0,1,3. Again for more fields: all combinations are run."""
    seeds: int = 3
    """Runs of every setting."""
    jobs: int | None = None
    """Runs side by side. None: one for every core."""
    ray: str | None = None
    """Let them run on Ray: --ray for one on this machine, --ray HOST:PORT for a cluster, whose machines must see the
    folder of the results."""
    out: Path | None = None
    """Folder of the results. None: sweeps/PRESET-FIELDS."""


_SHOWN = ("vary", "seeds", "jobs", "ray", "out", *(name for name in SHOWN if name != "seed"))
_VERB = Verb("sweep", Options, _DESCRIPTION, _SHOWN)


def run(argv: list[str]) -> int:
    """Runs `bathysphere sweep <argv>` and returns the exit code: 1 if a run failed."""
    if any(word.partition("=")[0] == "--seed" for word in argv):
        raise BathysphereError(
            "Every setting has the seeds 0, 1, 2, ...; say how many with --seeds, and leave out --seed."
        )
    argv = with_address(argv)
    vary = parse_vary(flag_values(argv, "--vary"))
    options, config, choices = read_run(_VERB, argv, domain=first_domain(vary))
    check_vary(vary, options.seeds)
    path = options.out or default_folder(config.preset, vary)
    chosen = Chosen(path)

    def make(domain: dict[str, Any]) -> RunConfig:
        return read_run(_VERB, argv, domain=domain, settle=chosen.settle).config

    study = make_sweep(config.preset, make, vary, options.seeds)
    if not options.json:
        if choices:
            sys.stdout.write(explained(choices, columns_of(sys.stdout)) + "\n")
        sys.stdout.write(f"{study.budgets[BUDGET].about} They go to {path}\n")
    chosen.save()
    folder = StudyFolder(path)
    command = shlex.join(["bathysphere", "sweep", *(word for word in argv if word != "--json")])
    num_failed = run_study(study, folder, BUDGET, command, seeds=options.seeds, jobs=options.jobs, ray=options.ray)
    summary = render(study, folder)
    text = markdown_table(study.summarise(folder.load()[1]), has_paper=False)
    text += f"\nThe report is {folder.report_file}"
    if num_failed:
        text += f"\n{failures(num_failed)}"
    say(summary, text, options.json)
    return 1 if num_failed else 0
