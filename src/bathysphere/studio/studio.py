"""One studio: the folder it shows, and what its pages share."""

from __future__ import annotations

from pathlib import Path

from bathysphere.studio.folder import RunsFolder
from bathysphere.studio.trainings import Trainings


class Studio:
    """What all pages of one studio share.

    Args:
      path: the folder of runs.
    """

    def __init__(self, path: Path) -> None:
        self.folder = RunsFolder(path)
        self.trainings = Trainings(self.folder)
