"""The Python version of `bathysphere train`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bathysphere.config.convert import override
from bathysphere.config.presets import find_preset
from bathysphere.config.run import RunConfig
from bathysphere.runs.directory import next_directory
from bathysphere.runs.runner import run

RUNS = Path("runs")  # where runs go when nobody says where


def train(
    preset: str | RunConfig,
    *,
    run_dir: str | Path | None = None,
    show: bool = False,
    pictures: bool = True,
    **overrides: Any,
) -> dict[str, Any]:
    """Trains, and returns what `result.json` holds; `result["run_dir"]` is where everything is.

    Args:
      preset: name of a preset, or a whole config.
      run_dir: where the run is written, a new or empty folder; the next free name under `runs/` if not given.
      show: whether to show progress in the terminal.
      pictures: whether to draw pictures when training ends.
      **overrides: fields of the config to change; nested ones as dicts: `train("deep-sea", seed=3,
        domain={"size": 40})`.
    """
    config = override(find_preset(preset) if isinstance(preset, str) else preset, overrides)
    path = next_directory(RUNS, config) if run_dir is None else Path(run_dir)
    display = None
    if show:
        from rich.console import Console

        from bathysphere.runs.display import RunDisplay

        display = RunDisplay(Console())
    return run(config, path, display, pictures=pictures)
