"""Small runs in blocks, of each world; and what is the same in all their ways of being played."""

from pathlib import Path

from bathysphere.config.convert import config_hash, override
from bathysphere.config.presets import find_preset
from bathysphere.config.run import RunConfig
from bathysphere.runs.directory import RunDirectory
from tests.runs.small import small_config, small_sokoban
from tests.runs.subprocesses import contents

WORLDS = ("deep-sea", "toy-montezuma", "sokoban")


def in_blocks(world: str, distance: int = 4, **changes) -> RunConfig:
    """A run of at least ten blocks, some of which hold more episodes than are played at once."""
    if world == "deep-sea":
        config = small_config(batch=5, domain={"size": 8}, steps=1600)
    elif world == "sokoban":
        config = override(small_sokoban(), {"log_every": 50, "steps": 700})
    else:
        small = {"steps": 2000, "batch": 4, "domain": {"max_steps": 25}, "learning": {"min_episodes": 5}}
        config = override(find_preset("toy-montezuma"), {**small, "log_every": 100})
    return override(config, {"scale": {"block": 6, "distance": distance}, **changes})


def assert_equal(one: Path, other: Path) -> None:
    """Asserts that two runs have the same config hash, the same metrics but for times, and the same weights."""
    hashes = [config_hash(RunDirectory.open(run).load_config()) for run in (one, other)]
    assert hashes[0] == hashes[1]
    (arrays, rows), (other_arrays, other_rows) = contents(one), contents(other)
    assert rows == other_rows
    assert len(rows) > 8
    assert rows[-1]["blocks"] >= 10
    assert rows[-1]["updates"] > 20
    assert arrays.keys() == other_arrays.keys()
    for name, array in arrays.items():
        assert array.tobytes() == other_arrays[name].tobytes(), name
