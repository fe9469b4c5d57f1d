"""The studio's server: pages behind a guard, on this machine unless told otherwise."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Response
from nicegui import app as pages_app
from nicegui import ui

from bathysphere.errors import BathysphereError
from bathysphere.studio.guard import LOOPBACK, Guard
from bathysphere.studio.pages import runs, search, studies, unknown, watch
from bathysphere.studio.pages.parts import STATIC
from bathysphere.studio.sessions import GoneError
from bathysphere.studio.studio import Studio
from bathysphere.studio.study_view import picture_file

_ANY = ("0.0.0.0", "::")  # addresses that mean all of this machine's


def serve(folder: Path, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serves a folder of runs until it is interrupted.

    Args:
      folder: of the runs.
      host: address to listen on; anything but a loopback address asks visitors for a token.
      port: to listen on; 0 for any that is free.
      ready: called with the URL to open.
    """
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    token = None if host in LOOPBACK else secrets.token_urlsafe(24)
    names = _names(host)
    studio = Studio(folder)
    studio.folder.runs()  # read before anybody waits for them
    guarded = Guard(make_app(studio), names, token)
    shown = f"[{names[0]}]" if ":" in names[0] else names[0]
    config = uvicorn.Config(guarded, log_level="warning", ws_max_size=1 << 22, timeout_graceful_shutdown=2)
    server = _Server(config, lambda: ready(f"http://{shown}:{port}/{f'?token={token}' if token else ''}"))
    server.run(sockets=[listening])


def make_app(studio: Studio) -> Any:
    """Returns the pages as an ASGI application, without guard."""
    application = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    pages_app.add_static_files("/static", STATIC)
    pages_app.add_api_route("/picture/{session}/{key}", _pictures(studio), methods=["GET"])
    pages_app.add_api_route("/drawn/{name:path}", _drawn(studio), methods=["GET"])
    for page in (runs, watch, search, unknown, studies):
        page.register(studio)
    icon = STATIC / "icon.svg"
    ui.run_with(
        application,
        title="Bathysphere",
        favicon=icon.read_text("utf-8"),
        dark=False,
        tailwind=False,
        language="en-US",
        binding_refresh_interval=None,
        show_welcome_message=False,
        gzip_middleware_factory=None,  # it costs more time than it saves nearby
    )
    return application


def _pictures(studio: Studio) -> Callable[[str, str], Awaitable[Response]]:
    """Returns what answers a request for the picture of a state."""

    async def picture(session: str, key: str) -> Response:
        try:
            content = await studio.thinking(studio.sessions.find(session).picture, key)
        except GoneError:  # no mistake of the page's: it shows the new search in a moment
            return Response(status_code=204)
        except BathysphereError as error:
            return Response(str(error), 404)
        return Response(content, media_type="image/png", headers={"cache-control": "max-age=3600"})

    return picture


def _drawn(studio: Studio) -> Callable[[str], Response]:
    """Returns what answers a request for a picture that a study has drawn."""

    def drawn(name: str) -> Response:
        try:
            content = picture_file(studio.folder, name).read_bytes()
        except (BathysphereError, OSError) as error:
            return Response(str(error), 404)
        return Response(content, media_type="image/png")

    return drawn


class _Server(uvicorn.Server):
    """Calls `started_up` when visitors can come."""

    def __init__(self, config: uvicorn.Config, started_up: Callable[[], None]) -> None:
        super().__init__(config)
        self._started_up = started_up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._started_up()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        told = getattr(error, "strerror", None) or error
        raise BathysphereError(f"Cannot listen on {host}, port {port}: {told}. Choose another --port.") from error
    return listening


def _names(host: str) -> tuple[str, ...]:
    """Returns the names by which the studio may be addressed."""
    if host in LOOPBACK:
        return LOOPBACK if host != "::1" else ("::1", *LOOPBACK[:2])
    if host not in _ANY:
        return (host.lower(), *LOOPBACK)
    own = socket.gethostname().lower()
    addresses = {str(info[4][0]) for info in socket.getaddrinfo(own, None)} if own else set()
    return (own, *sorted(addresses), *LOOPBACK)
