"""Draws the pictures of the first page and of the guide into docs/pictures: `python -m tools.pictures` (half a minute).

Everything is seeded, so the same code on the same kind of processor draws the same.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import bathysphere
from bathysphere.cli import main as bathysphere_command
from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.domains.observing import FinishedEpisode
from bathysphere.planning.graph.risk import find_risk_measure
from bathysphere.plots import BLUE, ORANGE

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
SIZE = 20  # of the sea in the pictures of exploration


def worlds(folder: Path) -> None:
    """Draws the three worlds, each solved by breadth-first search."""
    for name, options, kept in (
        ("deep-sea", ["--size", "12"], "gif"),
        ("toy-montezuma", [], "png"),
        ("sokoban", ["--num-boxes", "4", "--seed", "1", "--fps", "5"], "gif"),
    ):
        assert bathysphere_command(["draw", name, *options, "--by", "breadth-first", "--out", str(folder / name)]) == 0
        shutil.copy(folder / f"{name}.{kept}", PICTURES / f"{name}.{kept}")


def search(folder: Path) -> None:
    """Trains on a sea until it is solved, and keeps what the ensemble did not know meanwhile."""
    run = bathysphere.train(
        "deep-sea", run_dir=folder / "run", log_every=50, domain={"size": SIZE}, stop={"on_solved": True}
    )
    shutil.copy(Path(run["run_dir"]) / "pictures" / "uncertainty.png", PICTURES / "uncertainty.png")


class Visits(bathysphere.Callback):
    """Counts in which cells of the sea episodes have been."""

    def __init__(self, domain: DeepSea) -> None:
        self.domain, self.count = domain, np.zeros((SIZE, SIZE))

    def record(self, episodes: Sequence[FinishedEpisode], env_steps: int) -> None:
        """Adds finished episodes."""
        for episode in episodes:
            y, x = self.domain.cells(episode.states)
            np.add.at(self.count, (y, x), 1)


def exploration(folder: Path) -> None:
    """Draws where 60 dives go with different risk coefficients."""
    domain = DeepSea(DeepSeaConfig(size=SIZE))
    settings = (
        ("avoids what it does not know, κ = −10", -10.0),
        ("does not care, κ = 0", 0.0),
        ("seeks it, κ = 10", 10.0),
    )
    figure, panels = plt.subplots(1, 3, figsize=(9.6, 3.6))
    for panel, (title, coef) in zip(panels, settings, strict=True):
        visits = Visits(domain)
        run = bathysphere.train(
            "deep-sea",
            run_dir=folder / f"risk{coef}",
            pictures=False,
            domain={"size": SIZE},
            search={"risk_coef": coef},
            stop={"episodes": 60},
            observers=[visits],
        )
        seen = np.where(visits.count > 0, np.log1p(visits.count), np.nan)
        panel.set_facecolor("#0b2f47")
        panel.imshow(seen, cmap="YlOrBr_r", vmin=0)
        panel.plot(SIZE - 1, SIZE - 1, marker="*", color="#ffd34d", markersize=11, clip_on=False)
        panel.set_title(
            f"{title}\n{int((visits.count > 0).sum())} cells seen, {run['wins']} of 60 dives won", fontsize=9
        )
        panel.set_xticks([])
        panel.set_yticks([])
    figure.tight_layout()
    figure.savefig(PICTURES / "risk_exploration.png", dpi=110)
    plt.close(figure)


def scores(folder: Path) -> None:
    """Draws how the score of three children depends on the risk coefficient, for each separable measure."""
    rng = np.random.default_rng(0)
    children = {
        "known, 0.5": 0.5 + 0.02 * rng.standard_normal(20),
        "unsure, 0.4": 0.4 + 0.15 * rng.standard_normal(20),
        "one member hopes, 0.3": np.concatenate([np.full(19, 0.26), [1.06]]),
    }
    widths = {"mean_std": 3, "mean_variance": 15, "second_moment": 3, "exponential": 15}
    figure, panels = plt.subplots(1, 4, figsize=(11, 3))
    for panel, (name, width) in zip(panels, widths.items(), strict=True):
        coefs = np.linspace(-width, width, 121)
        measure = find_risk_measure(name).function
        for (label, values), color in zip(children.items(), (BLUE, ORANGE, "#5a8f3c"), strict=True):
            panel.plot(coefs, [measure(values, coef) for coef in coefs], label=label, color=color)
        panel.set_title(name, fontsize=9)
        panel.set_xlabel("κ")
        panel.grid(alpha=0.25)
    panels[0].set_ylabel("score")
    panels[0].legend(fontsize=7, frameon=False)
    figure.tight_layout()
    figure.savefig(PICTURES / "risk_scores.png", dpi=110)
    plt.close(figure)


def main() -> None:
    """Draws all of them, or those named on the command line."""
    named = set(sys.argv[1:])
    with tempfile.TemporaryDirectory() as name:
        for draw in (worlds, search, exploration, scores):
            if not named or draw.__name__ in named:
                draw(Path(name))


if __name__ == "__main__":
    main()
