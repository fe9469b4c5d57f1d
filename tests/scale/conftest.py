import pytest

from bathysphere.runs.runner import run
from tests.scale.small import WORLDS, in_blocks


@pytest.fixture(scope="session")
def here(tmp_path_factory):
    """Runs of each world, played in this process alone."""
    folder = tmp_path_factory.mktemp("here")
    for world in WORLDS:
        run(in_blocks(world), folder / world, pictures=False)
    return folder
