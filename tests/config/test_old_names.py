"""Names of earlier versions, wherever a config can come from."""

import pytest

from bathysphere.config.convert import config_hash, from_dict, override, to_dict
from bathysphere.config.old_names import as_first_named, renewed, renewed_flags
from bathysphere.config.presets import find_preset

OLD = {"lanes": 2, "learning": {"min_games": 7, "mask": {"per": "game"}, "replay": {"sampling": "game"}}}
NEW = {"workers": 2, "learning": {"min_episodes": 7, "mask": {"per": "episode"}, "replay": {"sampling": "episode"}}}


def test_old_names_and_values_are_read():
    assert renewed(OLD) == NEW
    assert renewed(NEW) == NEW
    assert as_first_named(NEW) == OLD


def test_a_config_with_old_names_is_the_same_config():
    config = override(find_preset("deep-sea"), OLD)
    assert config == override(find_preset("deep-sea"), NEW)
    assert (config.workers, config.learning.min_episodes) == (2, 7)
    assert from_dict(as_first_named(to_dict(config))) == config


def test_checkpoints_know_a_run_by_the_names_its_fields_had_first():
    # What version 0.1 computed for this config; a change here would orphan the checkpoints that people have.
    config = override(find_preset("deep-sea"), OLD)
    assert config_hash(config) == "7721d7b15ab3b995759e84508c707884a045bb1f308d2367d4115ba017494e1b"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["--lanes", "2"], ["--workers", "2"]),
        (["--learning.min-games=7"], ["--learning.min-episodes=7"]),
        (["--learning.min_games", "7"], ["--learning.min-episodes", "7"]),
        (["--learning.mask.per", "game"], ["--learning.mask.per", "episode"]),
        (["--learning.replay.sampling=game"], ["--learning.replay.sampling=episode"]),
        (["deep-sea", "--seed", "3", "--stop.on-solved"], ["deep-sea", "--seed", "3", "--stop.on-solved"]),
        (["--run-dir", "game"], ["--run-dir", "game"]),
    ],
)
def test_old_flags_are_read(old, new):
    assert renewed_flags(old) == new
