"""The planners on the same values: how much they solve with how many expansions, beside breadth-first search.

    python benchmarks/sokoban_planners.py [--boards 1000] [--out results/sokoban-planners]
    python benchmarks/sokoban_planners.py --out results/sokoban-planners --render

Sokoban: the agent plays fresh boards of 10x10 with four boxes. Deep-sea and Toy Montezuma: how often the shipped agents
ask the model before the first solution; breadth-first search, which knows nothing, is the baseline there.

Writes what the studies write (`results.csv`, `summary.json`, `table.md`, the figure, `report.html`); --render makes all
but the first again. It is no study, because those train and this one only plays.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bathysphere.agents.evaluation import Evaluation, evaluate
from bathysphere.domains.sokoban import GeneratorConfig, Level, generate
from bathysphere.planning import SearchConfig
from bathysphere.plots import BLUE, GREY, INK, ORANGE, tidy
from bathysphere.puzzles.evaluation import evaluate_levels
from bathysphere.puzzles.player import LevelPlayer
from bathysphere.storage.files import write_json
from bathysphere.storage.versions import collect_versions
from bathysphere.studies.folder import StudyFolder
from bathysphere.studies.records import write_records
from bathysphere.studies.report import markdown_table, render
from bathysphere.studies.study import Budget, Metric, Record, Setting, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "sokoban-planners"
BOARD_SEED = 7_000_002  # training numbers its boards otherwise; the settings of MCTS below were chosen on 7_000_001
BUDGETS = (100, 300, 1000, 3000)  # expansions
ENOUGH = 1_000_000  # expansions with which every search of a small world ends by itself
# With patience, MCTS waits before steps it cannot take back, and passes hardly change its expansions. Without it, and
# with few passes, it spends fewer on the boards it solves, and loses some boards: both forms are baselines.
MCTS: dict[str, dict[str, Any]] = {"mcts": {}, "mcts-hasty": {"passes": 10, "patience": 0.0}}
GUIDED = ("levin", "phs")  # by a policy
WORLDS = {"deep-sea": "Deep-sea", "toy-montezuma": "Toy Montezuma"}
# Weight 0 leaves nothing of the values: states in order of their distance from the start.
SMALL_WORLDS: dict[str, dict[str, Any]] = {
    "mcts": {"planner": "mcts", "risk_coef": 0.0},
    "best-first": {"planner": "best-first", "max_expansions": ENOUGH},
    "breadth-first": {"planner": "best-first", "weight": 0.0, "max_expansions": ENOUGH},
}
TITLES = {
    "mcts": "MCTS",
    "mcts-hasty": "MCTS, 10 passes, no waits",
    "best-first": "best-first",
    "levin": "Levin tree search",
    "phs": "PHS*",
    "breadth-first": "breadth-first",
}
COLOURS = dict(zip(TITLES, (INK, GREY, BLUE, ORANGE, "#2a9d5c", "#a3200f"), strict=True))


def share_within(budget: int) -> Metric:
    def is_solved(record: Record) -> float | None:
        return None if record["case"] != "sokoban" else float(record["solved"] and record["expansions"] <= budget)

    return Metric(f"solved-{budget}", f"Sokoban: solved within {budget:,} expansions", "share", is_solved, SOKOBAN)


def expansions_if_solved(record: Record) -> float | None:
    """Of boards solved within the largest budget."""
    is_counted = record["case"] == "sokoban" and record["solved"] and record["expansions"] <= BUDGETS[-1]
    return record["expansions"] if is_counted else None


def expansions_if_all_solve(record: Record) -> float | None:
    return expansions_if_solved(record) if record["all_solve"] else None


def calls_in(world: str) -> Metric:
    def calls(record: Record) -> float | None:
        return record["model_calls"] if record["case"] == world and record["solved"] else None

    title = f"{WORLDS[world]}: model calls to the first solution"
    return Metric(f"calls-{world}", title, "mean", calls, tuple(SMALL_WORLDS))


SOKOBAN = (*MCTS, "best-first", *GUIDED)
STUDY = Study(
    name=NAME,
    title="Planners on the same values",
    source="which has no such table",
    about=(
        "The same weights and the same boards, none of which the agent was trained on, with every planner. An "
        "expansion is a state (of MCTS: a node) that got children; a search that solves a board with n of them solves "
        "it within every budget from n on. Expansions per solved board compare only where the same boards are solved, "
        "so those that all planners solve stand by themselves. MCTS is as in training, and once without waits. "
        "Deep-sea and Toy Montezuma have one start, and a perfect model makes breadth-first search, which needs no "
        "values, the baseline there."
    ),
    settings=tuple(Setting(name, title, "sokoban") for name, title in TITLES.items()),
    metrics=(
        *(share_within(budget) for budget in BUDGETS),
        Metric("expansions", "Sokoban: expansions per solved board", "mean", expansions_if_solved, SOKOBAN),
        Metric("expansions-all", "Sokoban: expansions per board all solve", "mean", expansions_if_all_solve, SOKOBAN),
        *(calls_in(world) for world in WORLDS),
    ),
    budgets={"small": Budget("As many boards as the command says.", 1, {})},
    figure=lambda study, records: draw(study, records),
)


def draw(study: Study, records: list[Record]) -> Figure:
    """Draws the share solved against expansions allowed, and beside it the model calls in the small worlds."""
    from matplotlib.figure import Figure

    rows = {(row.setting.name, row.metric.name): row.ours for row in study.summarise(records)}
    figure = Figure(figsize=(10.5, 4.0), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    for name in SOKOBAN:
        estimates = [rows[name, f"solved-{budget}"] for budget in BUDGETS]
        if estimates[0].n:
            low, high = [e.low for e in estimates], [e.high for e in estimates]
            left.fill_between(BUDGETS, low, high, color=COLOURS[name], alpha=0.14, linewidth=0)
            left.plot(BUDGETS, [e.value for e in estimates], "o-", color=COLOURS[name], label=TITLES[name])
    left.set_xscale("log")
    left.set_xticks(BUDGETS, [f"{budget:,}" for budget in BUDGETS])
    left.minorticks_off()
    left.set_ylim(0, 1.02)
    left.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    left.set_xlabel("expansions allowed per board", color=INK)
    left.set_title("Sokoban boards solved, with 95 % intervals", loc="left", fontsize=10, color=INK)
    left.legend(frameon=False, fontsize=8, labelcolor=INK)
    places = {(name, world): 4 * w + k for w, world in enumerate(WORLDS) for k, name in enumerate(SMALL_WORLDS)}
    for (name, world), place in places.items():
        ours = rows[name, f"calls-{world}"]
        if ours.value is not None:
            right.plot(ours.value, place, "o", color=COLOURS[name], markersize=7)
            right.annotate(f"  {ours.value:,.0f}", (ours.value, place), fontsize=8, va="center", color=INK)
    right.set_xscale("log")
    right.margins(x=0.2)
    right.set_yticks(list(places.values()), [f"{WORLDS[world]}, {name}" for name, world in places], fontsize=8)
    right.invert_yaxis()
    right.set_title("model calls to the first solution", loc="left", fontsize=10, color=INK)
    for axis in (left, right):
        tidy(axis)
    return figure


def play_boards(player: LevelPlayer, levels: Sequence[Level]) -> Iterator[tuple[str, Evaluation]]:
    """Has every planner that the agent's values allow play all boards, with the largest budget."""
    for name, changes in MCTS.items():
        config = player.settings("mcts", **changes)
        assert isinstance(config, SearchConfig)
        steps = max(player.max_steps, ceil(BUDGETS[-1] / config.passes))  # so many that they can use the budget up
        yield name, evaluate_levels(player, levels, planner="mcts", max_steps=steps, **changes)
    for name in ("best-first", *(GUIDED if player.trained.values.has_policy else ())):
        yield name, evaluate_levels(player, levels, planner=name, max_expansions=BUDGETS[-1])


def board_records(name: str, evaluation: Evaluation) -> list[Record]:
    columns = ("solved", "expansions", "model_calls", "states", "moves")
    return [
        record(name, "sokoban", result["number"], {column: result[column] for column in columns}, result["seconds"])
        for result in evaluation.results
    ]


def small_world_record(name: str, world: str, seed: int) -> Record:
    """Plays one episode, the whole of a planner's way to a solution from the one start there is."""
    one = evaluate(world, 1, seed, **SMALL_WORLDS[name])
    counted = {
        "solved": bool(one.solved),
        "expansions": round(one.expansions),
        "model_calls": round(one.model_calls),
        "states": round(one.states),
        "moves": round(one.mean_length),
    }
    return record(name, world, seed, counted, one.seconds)


def record(name: str, case: str, seed: int, counted: dict[str, Any], seconds: float) -> Record:
    versions = {key: value for key, value in VERSIONS.items() if key in ("commit", "machine", "processor")}
    identity = {"setting": name, "case": case, "seed": seed, "state": "finished", "error": None}
    return {**identity, **counted, "all_solve": False, "wall_seconds": seconds, **versions}


def mark_common(records: list[Record]) -> None:
    """Notes which boards every planner has solved. Mutates: records."""
    boards = [one for one in records if one["case"] == "sokoban"]
    unsolved = {one["seed"] for one in boards if expansions_if_solved(one) is None}
    for one in boards:
        one["all_solve"] = one["seed"] not in unsolved


VERSIONS = collect_versions()


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", default="sokoban", help="a Sokoban agent: shipped, a file or a run directory")
    parser.add_argument("--boards", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=BOARD_SEED, help="of the boards")
    parser.add_argument("--dives", type=int, default=20, help="seeds of the small worlds")
    parser.add_argument("--out", type=Path, default=Path("studies") / NAME)
    parser.add_argument("--render", action="store_true", help="make table, figure and report again")
    options = parser.parse_args(argv)
    folder = StudyFolder(options.out)
    if not options.render:
        play(folder, options)
    render(STUDY, folder)
    print(markdown_table(STUDY.summarise(folder.load()[1])))


def play(folder: StudyFolder, options: argparse.Namespace) -> None:
    """Plays everything and writes the raw results."""
    folder.path.mkdir(parents=True, exist_ok=True)
    asked = f"--agent {options.agent} --boards {options.boards} --seed {options.seed} --dives {options.dives}"
    records = [
        small_world_record(name, world, seed)
        for world in WORLDS
        for name in SMALL_WORLDS
        for seed in range(options.dives if name == "mcts" else 1)  # the others draw nothing
    ]
    player, levels = LevelPlayer(options.agent), generate(options.boards, GeneratorConfig(), options.seed)
    for name, evaluation in play_boards(player, levels):
        print(f"{TITLES[name]}: {evaluation}", flush=True)
        records += board_records(name, evaluation)
    mark_common(records)
    write_records(records, folder.records_file, None)
    about = {"study": NAME, "command": f"python benchmarks/{Path(__file__).name} {asked}", "budget": "small"}
    write_json(folder.summary_file, about)


if __name__ == "__main__":
    main()
