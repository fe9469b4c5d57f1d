"""`bathysphere evaluate`: how well an agent plays."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from bathysphere.agents.evaluation import Evaluation, evaluate, given
from bathysphere.cli.common import parse, say, with_address
from bathysphere.cli.progress import track_episodes, track_levels
from bathysphere.domains.sokoban import read_levels
from bathysphere.errors import BathysphereError
from bathysphere.planning.named import named_planner, settings_of
from bathysphere.puzzles.evaluation import evaluate_levels
from bathysphere.puzzles.player import LevelPlayer
from bathysphere.puzzles.solutions import check_solutions_file, write_solutions
from bathysphere.runs.workers import chosen_workers

_DESCRIPTION = """Let an agent play, without learning, and count its wins and what it earns.

The agent is the name of one that comes with Bathysphere ('bathysphere agents' lists them), an agent file, or a run
directory. Planning is as in training unless an option changes it: an agent that was trained to seek uncertainty still
does, so --risk-coef 0 shows what it can do when it only wants to win.

With --levels, a Sokoban agent plays every level of a file or folder once. Several numbers of --passes, or several
planners, are compared. A planner that the agent was not trained with has its own defaults.

Examples:

bathysphere evaluate runs/deep-sea-seed0-1

bathysphere evaluate deep-sea --episodes 1000 --risk-coef 0 --json

bathysphere evaluate sokoban --episodes 10000 --ray 10.0.0.1:6379 --workers 16

bathysphere evaluate sokoban --levels levels.txt --solutions solved.sok

bathysphere evaluate sokoban --levels levels.txt --passes 10,50,200 --plot passes.png

bathysphere evaluate sokoban --levels levels.txt --planner best-first --max-expansions 20000

bathysphere evaluate sokoban --levels levels.txt --planner mcts,best-first --plot planners.png
"""


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere evaluate`."""

    agent: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="AGENT")]
    """Name of a shipped agent, agent file, or run directory."""
    episodes: int | None = None
    """Episodes to play in the agent's own world. None: 100."""
    levels: Path | None = None
    """Play the levels of this file (Boxoban, XSB or .sok) or folder instead, each once."""
    limit: int | None = None
    """With --levels: only the first so many."""
    solutions: Path | None = None
    """With --levels: write the levels and the solutions found (the shortest, of several) to this .sok file."""
    planner: str | None = None
    """mcts, best-first, levin, phs or none; several with commas. None: as in training, and so for the next ones."""
    passes: str | None = None
    """mcts: planning passes per step; several with commas."""
    max_expansions: int | None = None
    """best-first, levin, phs: expansions after which a search ends. None: 1000, if not trained with another number."""
    order: str | None = None
    """best-first: which state is expanded next: steps or value."""
    weight: float | None = None
    """best-first: of what is still to come against what is behind."""
    width: int | None = None
    """best-first, levin, phs: states expanded at once in each search."""
    prune: bool | None = None
    """Whether states that the world knows to be hopeless are left out (best-first) or worth 0 (mcts)."""
    max_steps: int | None = None
    """Steps before an episode is cut off, or that a plan may have."""
    patience: float | None = None
    """mcts: share of the steps that may be spent on planning before one that cannot be taken back."""
    risk: str | None = None
    """Risk measure."""
    risk_coef: float | None = None
    """Weight of uncertainty in the risk measure."""
    model_risk: float | None = None
    """With a run's memory or ensemble of models: weight of what they do not know; below 0 it is avoided."""
    seed: int = 0
    """Decides start states, ties and the members drawn."""
    workers: int | None = None
    """Processes that play episodes, in blocks. What is counted does not depend on their number. None: this one alone,
    without blocks; with --ray one for every core."""
    ray: str | None = None
    """Let them play on Ray: --ray for one on this machine, --ray HOST:PORT for a cluster, --ray auto for the one that
    this machine belongs to."""
    plot: Path | None = None
    """Draw the rate into this .png file: against several --passes, or against expansions for several planners."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere evaluate <argv>` and returns the exit code."""
    options = parse(Options, with_address(argv), "evaluate", _DESCRIPTION)
    cases = _cases(options)
    _check(options, len(cases))
    command = shlex.join(["bathysphere", "evaluate", *(word for word in argv if word != "--json")])
    if options.levels is None:
        workers = chosen_workers(options.workers, options.ray or False)
        players = None if workers is None else workers.make_players
        episodes = 100 if options.episodes is None else options.episodes
        with track_episodes(episodes * len(cases)) as played:
            evaluations = [
                evaluate(
                    options.agent,
                    episodes,
                    options.seed,
                    on_progress=played(number * episodes),
                    players=players,
                    **case,
                )
                for number, case in enumerate(cases)
            ]
        files: dict[str, Any] = {}
    else:
        evaluations = _play_levels(options, options.levels, cases)
        files = {"levels_file": str(options.levels), "solutions_file": _text(options.solutions)}
    results = [{**files, **evaluation.to_dict(), "command": command} for evaluation in evaluations]
    written = [str(file) for file in (options.solutions, options.plot) if file is not None]
    if len(evaluations) == 1:
        text = [str(evaluations[0])] + [f"The solutions are in {file}." for file in written]
        say(results[0], "\n".join(text), options.json)
        return 0
    if options.plot is not None:
        from bathysphere.agents import evaluation_picture as picture

        draw = picture.draw_planners if "," in (options.planner or "") else picture.draw_passes
        draw(evaluations, options.plot)
    text = [*_table(evaluations)] + ([f"See {' and '.join(written)}."] if written else [])
    result = {"agent": options.agent, "evaluations": results, "plot": _text(options.plot)}
    say(result, "\n".join(text), options.json)
    return 0


def _cases(options: Options) -> list[dict[str, Any]]:
    """Returns what to evaluate: keywords for `evaluate`, of each planner or each number of passes."""
    of_search = ("max_expansions", "order", "weight", "width", "prune", "max_steps", "patience")
    names = (*of_search, "risk", "risk_coef", "model_risk")
    changes = given({name: getattr(options, name) for name in names})
    passes = _parse_passes(options.passes)
    planners = [None] if options.planner is None else [name.strip() for name in options.planner.split(",")]
    if len(planners) == 1:
        return [{"planner": planners[0], "passes": number, **changes} for number in passes]
    if len(passes) > 1:
        raise BathysphereError("Compare several planners or several --passes, not both at once.")
    if len(set(planners)) < len(planners):
        raise BathysphereError(f"--planner is {options.planner}; name every planner once.")
    changes |= given({"passes": passes[0]})
    known = {planner: settings_of(named_planner(planner)) for planner in planners if planner is not None}
    for name in changes:
        if not any(name in settings for settings in known.values()):
            raise BathysphereError(
                f"--{name.replace('_', '-')} is no setting of any of the planners {', '.join(known)}. Leave it out."
            )
    return [
        {"planner": planner, **{name: value for name, value in changes.items() if name in settings}}
        for planner, settings in known.items()
    ]


def _parse_passes(text: str | None) -> list[int | None]:
    """Reads "10" or "10,50,200"; nothing means as in training."""
    if text is None:
        return [None]
    numbers = text.split(",")
    if not all(number.strip().isdecimal() and int(number) > 0 for number in numbers):
        raise BathysphereError(f"--passes is {text!r}; expected a number from 1, or several with commas: 10,50,200.")
    return [int(number) for number in numbers]


def _check(options: Options, num_cases: int) -> None:
    """Refuses options that do not go together, before any work is done."""
    if options.levels is None and (options.limit is not None or options.solutions is not None):
        raise BathysphereError("--limit and --solutions are about the levels of a file; name it with --levels.")
    if options.levels is not None and options.episodes is not None:
        raise BathysphereError("--levels plays every level once; use --limit instead of --episodes for fewer.")
    if options.levels is not None and (options.workers is not None or options.ray is not None):
        raise BathysphereError(
            "--workers and --ray are for episodes of the agent's own world. For the levels of a file use 'bathysphere "
            "solve LEVELS --ray --jobs N'."
        )
    if options.limit is not None and options.limit < 1:
        raise BathysphereError(f"--limit is {options.limit}; expected at least 1.")
    if options.plot is not None and num_cases < 2:
        raise BathysphereError(
            "--plot compares several numbers of passes, or planners; give several with commas: --passes 10,50,200, or "
            "--planner mcts,best-first."
        )
    if options.plot is not None and options.plot.suffix.lower() != ".png":
        raise BathysphereError(f"--plot is {options.plot}; expected a name that ends in .png.")
    if options.levels is not None and options.solutions is not None:
        check_solutions_file(options.solutions, options.levels)


def _play_levels(options: Options, source: Path, cases: list[dict[str, Any]]) -> list[Evaluation]:
    player = LevelPlayer(options.agent)
    levels = read_levels(source)[: options.limit]
    evaluations, solutions = [], dict[int, str]()
    for case in cases:
        passes = case.get("passes")
        label = case["planner"] or "playing" if passes is None else f"{passes} passes"
        evaluations.append(evaluate_levels(player, levels, options.seed, track_levels(label, len(levels)), **case))
        for result in evaluations[-1].results:
            found, best = result["solution"], solutions.get(result["number"])
            if found is not None and (best is None or len(found) < len(best)):
                solutions[result["number"]] = found
    if options.solutions is not None:
        write_solutions(options.solutions, levels, solutions)
    return evaluations


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _table(evaluations: list[Evaluation]) -> list[str]:
    """Returns a line for each planner, or each number of passes."""
    is_planner = len({row.planner for row in evaluations}) > 1
    is_episode = evaluations[0].unit == "episode"
    earned = f"{'return':>8}  " if is_episode else ""
    lines = [
        f"{'planner' if is_planner else 'passes':>10}  {'rate':>6}  {'95 % interval':>15}  {earned}{'solution':>8}  "
        f"{'states':>9}  {'expansions':>10}  {'if solved':>9}  {'seconds':>8}"
    ]
    for row in evaluations:
        low, high = row.interval
        earned = f"{row.mean_return:>8.4g}  " if is_episode else ""
        lines.append(
            f"{row.planner if is_planner else row.passes:>10}  {row.rate:>6.1%}  {f'{low:.1%} - {high:.1%}':>15}  "
            f"{earned}{_number(row.mean_solution_length):>8}  {row.states:>9,.1f}  {row.expansions:>10,.1f}  "
            f"{_number(row.solved_expansions):>9}  {row.seconds:>8.2f}"
        )
    unit = evaluations[0].unit
    return [*lines, f"Solution: mean steps. States, expansions: per {unit}; if solved: expansions per solved {unit}."]


def _number(mean: float | None) -> str:
    return "-" if mean is None else f"{mean:,.1f}"
