"""One run of a study in a process of its own: `python -m bathysphere.studies.worker RUN_DIR [OPTIONS]`.

It continues the run in the directory, from its checkpoint if there is one. When its standard input ends, because
the scheduler wants it to stop or is gone, it saves and stops.

--pictures: draw the run's pictures when it ends. --evaluate N: then play N episodes without learning. --import MODULE:
import a module that the user has named first.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from bathysphere.agents.evaluation import evaluate
from bathysphere.domains.user_code import import_named
from bathysphere.errors import BathysphereError
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.runner import resume
from bathysphere.storage.files import write_json

_GRACE_SECONDS = 30.0  # seconds in which the process of an earlier scheduler may finish saving the same run


def main(argv: list[str]) -> int:
    """Runs the run and returns the exit code."""
    threading.Thread(target=_stop_with_input, daemon=True).start()
    path, options = Path(argv[0]), argv[1:]
    episodes = int(options[options.index("--evaluate") + 1]) if "--evaluate" in options else 0
    try:
        for number, option in enumerate(options):
            if option == "--import":
                import_named(options[number + 1])
        directory = RunDirectory.open(path)
        deadline = time.monotonic() + _GRACE_SECONDS
        while directory.is_running() and time.monotonic() < deadline:
            time.sleep(0.1)
        result = resume(path, pictures="--pictures" in options)
        if episodes and result["stopped_by"] != "interrupted":
            # With its own seed: run i of every setting is tried on the same episodes.
            write_json(directory.evaluation_file, evaluate(path, episodes, result["seed"]).to_dict())
    except BathysphereError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _stop_with_input() -> None:
    # Not through sys.stdin, whose lock Python cannot take back from a waiting thread when it exits.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
