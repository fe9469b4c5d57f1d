"""A study of seconds, with a setting that always fails: `python -m tests.studies.tiny OUT [OPTIONS]` runs it."""

import os
import signal
import sys
import time

from bathysphere.cli import main
from bathysphere.studies import STUDIES
from bathysphere.studies.display import StudyDisplay
from bathysphere.studies.figures import steps_by_size
from bathysphere.studies.study import Budget, Case, Metric, PaperNumber, Picture, Setting, Study

STEPS = 3000
SIZES = tuple(Case(f"N{n}", {"domain": {"size": n}}, {"size": n}) for n in (4, 8))
OFTEN = {"checkpoint": {"seconds": 0.05}}
OURS = Setting("ours", "preset deep-sea", "deep-sea", OFTEN)
SMALL = {"batch": 8, "learning": {"min_episodes": 5}}
PAPER = Setting("paper", "preset paper/deep-sea", "paper/deep-sea", {**SMALL, **OFTEN})
BROKEN = Setting("broken", "broken", "deep-sea", {"values": {"network": "mlp"}})  # which its optimiser cannot train


def make_study(*settings: Setting) -> Study:
    return Study(
        name="tiny",
        title="A tiny study",
        source="nowhere",
        about="Small seas <and> nothing else.",
        settings=settings,
        metrics=(
            Metric("solved", "solved", "share", lambda r: float(r["solved_step"] is not None)),
            Metric("steps", "steps to solve", "mean", lambda r: r["solved_step"]),
        ),
        budgets={
            "small": Budget("Tiny.", 2, {"steps": STEPS}, SIZES),
            "paper": Budget("Tiny.", 4, {"steps": 2 * STEPS}),
        },
        figure=steps_by_size,
        paper={("ours", "solved"): PaperNumber(0.81, "30/37", "nowhere")},
        pictures=(Picture("ours", "N8", "uncertainty.png", "A picture."),),
    )


def _has_checkpoint(job):
    return any((job.path / "checkpoints").glob("step-*"))


def stop_in_between():
    """Sends this process the signal in STOP_WITH when a run is finished and those that run now have checkpoints.

    It does so itself: a process that watches from outside may come too late on a busy machine.
    """
    update, number = StudyDisplay.update, int(os.environ["STOP_WITH"])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it

    def update_and_stop(display, jobs):
        update(display, jobs)
        if any(job.state == "finished" for job in jobs):
            for job in jobs:
                while job.state == "running" and job.process.poll() is None and not _has_checkpoint(job):
                    time.sleep(0.01)
            os.kill(os.getpid(), number)

    StudyDisplay.update = update_and_stop


TINY, TINY_BROKEN = make_study(OURS, PAPER), make_study(OURS, BROKEN)

if __name__ == "__main__":
    STUDIES["tiny"] = TINY
    if "STOP_WITH" in os.environ:
        stop_in_between()
    sys.exit(main(["reproduce", "tiny", "--out", *sys.argv[1:]]))
