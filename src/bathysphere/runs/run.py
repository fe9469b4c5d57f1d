"""A run as an object: its folder, how it ended, and everything that can be done with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bathysphere.agents.evaluation import Evaluation, evaluate
from bathysphere.agents.loading import load_agent
from bathysphere.config.run import RunConfig
from bathysphere.errors import BathysphereError
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.listing import describe_run
from bathysphere.runs.metrics import read_rows
from bathysphere.runs.report import told

if TYPE_CHECKING:
    import pandas

    from bathysphere.agents.agent import Agent
    from bathysphere.domains.base import States
    from bathysphere.domains.playing import PlayedEpisode
    from bathysphere.planning.inspect import RootReport


class Run(Mapping[str, Any]):
    """What a training run has left behind. It is a mapping too, of what `result.json` holds: `run["solved_step"]`.

    Of a run that has not ended it holds the numbers of its latest row, and `run["stopped_by"]` is None. Everything is
    as it was when the object was made: `run.resume()` returns a new one. Where a run directory is asked for, a run will
    do.

    Args:
      path: the run directory.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._directory = RunDirectory.open(Path(path))
        about = describe_run(self._directory)
        self.state: str = about.pop("state")
        """What the run was stopped by, or running, unfinished or damaged."""
        result = None if self.state == "damaged" else self._directory.load_result()
        self._result = result or about | {"stopped_by": None}

    @property
    def path(self) -> Path:
        """The run directory."""
        return self._directory.path

    @property
    def config(self) -> RunConfig:
        """What decided the run."""
        return self._directory.load_config()

    @cached_property
    def agent(self) -> Agent:
        """The agent that was trained, as of the newest checkpoint."""
        return load_agent(self.path)

    def curves(self) -> pandas.DataFrame:
        """Returns the metrics as a pandas frame: a row every `log_every` steps, at first every 100, and the last."""
        return frame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """Returns the metrics as a list of rows; where none was written yet, one of what is known."""
        return read_rows(self._directory.metrics_file) or [dict(self._result)]

    def resume(self, **options: Any) -> Run:
        """Continues the run; options as for `bathysphere.resume`."""
        from bathysphere.runs.api import resume

        return resume(self, **options)

    def evaluate(self, episodes: int = 100, seed: int = 0, planner: str | None = None, **search: Any) -> Evaluation:
        """Lets the agent play without learning, and counts; arguments as for `bathysphere.evaluate`."""
        return evaluate(self, episodes, seed, planner, **search)

    def watch(
        self, file: str | PathLike[str] | None = None, *, episodes: int = 1, seed: int = 0, fps: float = 8.0
    ) -> list[PlayedEpisode]:
        """Lets the agent play, and shows it as text, or writes a film; returns what was played.

        Args:
          file: the film, a .gif or .mp4; None shows text: moving in a terminal, elsewhere how each episode ended.
          episodes: how many.
          seed: decides start states, ties and the members drawn.
          fps: steps per second.
        """
        from bathysphere.runs.watching import find_saver, play_episodes, save_film, show

        if file is not None:
            find_saver(Path(file))
        agent = load_agent(self.path, seed=seed)
        played = play_episodes(agent, episodes, seed)
        if file is not None:
            save_film(Path(file), agent.domain, played, fps)
        else:
            show(agent.domain, played, fps)
        return played

    def explain(self, state: States | Any | None = None) -> RootReport:
        """Returns what the planner thinks in a state: see `Agent.explain`."""
        return self.agent.explain(state)

    def export(self, path: str | PathLike[str]) -> Path:
        """Writes the agent as a file that needs nothing of the run, with a card; its name ends in .safetensors."""
        from bathysphere.runs.export import export

        export(self.path, Path(path))
        return Path(path)

    def report(self) -> str:
        """Returns in sentences how the run went: solved, or what looks wrong, and the next thing to try."""
        about = self._result
        solved = f"Solved at step {about['solved_step']:,}." if about["solved_step"] is not None else "Not solved."
        return "\n".join([solved, *filter(None, [told(about.get("report", ()))])])

    def __fspath__(self) -> str:
        return str(self.path)

    def __getitem__(self, name: str) -> Any:
        return self._result[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._result)

    def __len__(self) -> int:
        return len(self._result)

    def __repr__(self) -> str:
        about = self._result
        solved = f"solved at step {about['solved_step']:,}" if about["solved_step"] is not None else "not solved"
        earned = about.get("return_mean_50")
        lately = f"lately {about['win_rate_100']:.0%} won" + ("" if earned is None else f", mean return {earned:.4g}")
        return (
            f"<Run {self.path}: {about['preset']}, seed {about['seed']}, {self.state}; {about['env_steps']:,} steps, "
            f"{about['episodes']:,} episodes, {solved}, {lately}"
            f"{''.join('; ' + remark['name'] for remark in about.get('report', ()))}>"
        )


def load_run(run_dir: str | PathLike[str]) -> Run:
    """Returns the run in a directory, finished or not."""
    return Run(run_dir)


def frame(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    """Returns rows as a pandas frame.

    Raises:
      BathysphereError: without pandas.
    """
    try:
        import pandas
    except ImportError as error:
        raise BathysphereError(
            "Frames need pandas: pip install 'bathysphere[pandas]'. Without it, run.rows() gives the same as a list."
        ) from error
    return pandas.DataFrame(rows)
