"""Episodes that are being watched, by a name that pages pass on in their addresses."""

from __future__ import annotations

import io
import secrets
import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bathysphere.domains.presentation import picture_of
from bathysphere.domains.sokoban import Level
from bathysphere.errors import BathysphereError
from bathysphere.studio.agents import Agents, Known, agent_in, level_start, start_states
from bathysphere.studio.watched import Thought, Watched

_MOST = 8  # sessions kept; the oldest goes first


class GoneError(BathysphereError):
    """The search has gone on since a page asked for a state of it."""


@dataclass
class Session:
    """One episode that somebody watches, perhaps in several windows."""

    name: str
    known: Known
    watched: Watched
    seed: int = 0
    level: Level | None = None  # of Sokoban, if one was chosen
    thought: Thought | None = None  # that pages show

    @property
    def version(self) -> tuple[str, int]:
        """Another value after every change."""
        return self.known.name, self.watched.version

    def picture(self, key: str) -> bytes:
        """Returns a state as a PNG file: `now` is that of the episode, a number one of its graph."""
        if key == "now":
            state = self.watched.episode.state
        elif key.isdigit() and self.thought is not None and int(key) < len(self.thought.graph.states):
            state = self.thought.graph.states[int(key)]
        else:
            raise GoneError("There is no such picture now.")
        return png(picture_of(self.watched.agent.domain, state))


class Sessions:
    """All episodes that are being watched.

    Args:
      agents: where agents come from.
    """

    def __init__(self, agents: Agents) -> None:
        self._agents = agents
        self._open: dict[str, Session] = {}
        self._lock = threading.Lock()

    def begin(self, agent: str, seed: int = 0, level: Level | None = None, like: Session | None = None) -> Session:
        """Begins an episode.

        Args:
          agent: a name as `Agents` has it.
          seed: of the start state.
          level: to play instead, in Sokoban.
          like: a session that this one takes the place of; it keeps the settings if the agent is the same.
        """
        known = self._agents.load(agent)
        domain, start = start_states(known, seed) if level is None else level_start(known, level)
        watched = Watched(agent_in(known, domain), start, seed)
        if like is not None and like.known.name == agent:
            watched.settings = like.watched.settings
        name = secrets.token_urlsafe(6) if like is None else like.name
        session = Session(name, known, watched, seed, level)
        session.watched.version = 0 if like is None else like.watched.version + 1
        with self._lock:
            self._open.pop(name, None)
            self._open[name] = session
            while len(self._open) > _MOST:
                self._open.pop(next(iter(self._open)))
        return session

    def find(self, name: str) -> Session:
        """Returns a session that is still open."""
        if name not in self._open:
            raise BathysphereError("This episode is no longer in memory. Begin another on the page Watch.")
        return self._open[name]

    def newest(self) -> Session | None:
        """Returns the session that was begun last."""
        return next(reversed(self._open.values()), None)


def png(picture: NDArray[np.uint8]) -> bytes:
    """Returns a picture, uint8 [height, width, 3], as a PNG file."""
    content = io.BytesIO()
    Image.fromarray(picture).save(content, format="PNG", compress_level=1)
    return content.getvalue()


def data_url(picture: NDArray[np.uint8]) -> str:
    """Returns a small picture as a URL that holds it."""
    import base64

    return f"data:image/png;base64,{base64.b64encode(png(picture)).decode()}"
