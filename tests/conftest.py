"""Settings every test shares."""

import os
import signal

import numba
import numpy as np
import pytest
from hypothesis import settings

# No test depends on how fast the machine is: the first example may compile for a minute.
settings.register_profile("bathysphere", deadline=None, print_blob=True)
settings.load_profile("bathysphere")

# Tests may be run with nohup, which lets them and their children ignore a closed terminal.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

if numba.config.DISABLE_JIT:
    # Hashes and random streams wrap around on purpose; machine code does so silently, NumPy scalars warn.
    np.seterr(over="ignore")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Tests neither use nor fill the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "BATHYSPHERE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def sokoban_run(tmp_path_factory):
    """A run directory with a small Sokoban agent in it. No test changes it."""
    from bathysphere.runs.runner import run
    from tests.runs.small import small_sokoban

    path = tmp_path_factory.mktemp("sokoban") / "run"
    run(small_sokoban(), path, pictures=False)
    return path
