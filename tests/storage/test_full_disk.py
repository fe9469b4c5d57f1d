"""A disk that is full: the operating system itself refuses to let files grow."""

import json
import subprocess
import sys

from bathysphere.storage.checkpoint import CheckpointStore

_SAVE = """
import resource, sys
from pathlib import Path
import numpy as np
from bathysphere.errors import BathysphereError
from bathysphere.storage.checkpoint import CheckpointStore

store = CheckpointStore(Path(sys.argv[1]), "hash")
store.save({"values.a": np.arange(10), "b": np.zeros(10)}, 1, 0.0)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    store.save({"values.a": np.arange(10), "b": np.zeros(100_000)}, 2, 0.0)
except BathysphereError as error:
    print(error)
"""

_TRAIN = """
import resource, sys
from bathysphere.cli import main
scratch, *arguments = sys.argv[1:]
# Compiles everything first: caching machine code needs large files too.
main(["train", "deep-sea", "--domain.size", "6", "--steps", "200", "--no-pictures", "--json", "--run-dir", scratch])
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
print("full")
sys.exit(main(arguments))
"""


def test_a_failed_save_is_a_sentence_and_leaves_the_last_checkpoint(tmp_path):
    folder = tmp_path / "checkpoints"
    done = subprocess.run([sys.executable, "-c", _SAVE, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"Cannot write {folder / 'step-000000000002'}: File too large.")
    assert "The last checkpoint, step-000000000001, is intact." in done.stdout
    assert [path.name for path in folder.iterdir()] == ["step-000000000001"]
    assert CheckpointStore(folder, "hash").load().env_steps == 1


def test_training_says_so_and_can_go_on_later(tmp_path):
    run = str(tmp_path / "run")
    # A row every other step: the metrics outgrow the limit, wherever a checkpoint does not.
    flags = ["--domain.size", "6", "--steps", "1200", "--log-every", "8", "--checkpoint.seconds", "0.001"]
    command = [
        sys.executable,
        "-c",
        _TRAIN,
        str(tmp_path / "scratch"),
        "train",
        "deep-sea",
        "--run-dir",
        run,
        "--json",
        *flags,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[1:]) == (2, ["full"]), done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: Cannot write ")  # cold caches say something before it
    assert "Free some space" in done.stderr
    assert "Traceback" not in done.stderr
    command = [sys.executable, "-m", "bathysphere", "train", "--resume", run, "--json", "--no-pictures"]
    done = subprocess.run([*command, "--checkpoint.seconds", "60"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["stopped_by"] == "steps"
