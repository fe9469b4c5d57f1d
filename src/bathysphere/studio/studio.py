"""One studio: the folder it shows, and what its pages share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bathysphere.studio.agents import Agents
from bathysphere.studio.folder import RunsFolder
from bathysphere.studio.sessions import Sessions
from bathysphere.studio.trainings import Trainings


class Studio:
    """What all pages of one studio share.

    Args:
      path: the folder of runs.
    """

    def __init__(self, path: Path) -> None:
        self.folder = RunsFolder(path)
        self.trainings = Trainings(self.folder)
        self.agents = Agents(self.folder)
        self.sessions = Sessions(self.agents)
        # One thread plans and draws for everybody: ensembles are shared, and so are worlds, which may be simulators
        # that are put into one state after the other. And trainings want the other cores.
        self._thinker = ThreadPoolExecutor(1, "thinking")

    async def thinking(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Runs something that plans or asks a world, one after the other, while pages stay alive."""
        return await asyncio.get_running_loop().run_in_executor(self._thinker, work, *arguments)
