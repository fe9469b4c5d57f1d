"""What a run directory says about its run: the config, and the checkpoints that belong to it."""

from __future__ import annotations

from pathlib import Path

from bathysphere.config.convert import config_hash, from_dict, plain_hash
from bathysphere.config.run import RunConfig
from bathysphere.errors import BathysphereError, UnknownNameError
from bathysphere.storage.checkpoint import CheckpointStore
from bathysphere.storage.files import read_json

CONFIG, CHECKPOINTS, MODEL = "config.json", "checkpoints", "model.safetensors"


def check_is_run(path: Path) -> None:
    """Refuses a folder that is no run directory."""
    if not (path / CONFIG).is_file():
        raise BathysphereError(
            f"{path} is not a run directory: it has no {CONFIG}. 'bathysphere runs' lists the runs there are."
        )


def load_config(run_dir: Path) -> RunConfig:
    """Returns the config of a run."""
    try:
        return from_dict(read_json(run_dir / CONFIG))
    except BathysphereError as error:
        kind = UnknownNameError if isinstance(error, UnknownNameError) else BathysphereError
        raise kind(f"The config of {run_dir} cannot be used. {error}") from error


def open_checkpoints(run_dir: Path) -> CheckpointStore:
    """Returns a run's checkpoints, to be read; those of earlier versions too, whose configs had fewer fields."""
    config = load_config(run_dir)
    saved_hash = plain_hash(read_json(run_dir / CONFIG))
    return CheckpointStore(run_dir / CHECKPOINTS, config_hash(config), saved_hash=saved_hash)
