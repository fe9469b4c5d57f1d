"""Who may talk to the studio: its own pages only, and with a token if it can be reached from other machines."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_COOKIE = "bathysphere-studio-token"
_MAX_BODY = 2 << 20  # bytes of a request: level files are text
_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'self' 'unsafe-inline' 'unsafe-eval'; img-src 'self' data: blob:; font-src 'self' data:; "
        b"object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class Guard:
    """Passes on to an ASGI application what may come in, and refuses the rest before the application sees it.

    A page of another site can make a browser send requests here. It cannot choose their Host and Origin, so these tell:
    Host must be one of the studio's own names (a foreign name that leads here by DNS is refused), and Origin, where
    there is one, must be the same.

    Args:
      app: the application.
      hosts: names under which the studio may be addressed, without port.
      token: what has to be in the URL, or in the cookie that the first such URL leaves; None if nothing is asked for.
    """

    def __init__(self, app: App, hosts: tuple[str, ...], token: str | None = None) -> None:
        self.app, self._hosts, self._token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request or a websocket."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refusal = self.refusal(scope)
        if refusal is None:
            await self.app(scope, receive, self._with_headers(scope, send))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": refusal})
        else:
            body = f"{refusal}\n".encode()
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    def refusal(self, scope: Scope) -> str | None:
        """Says why a request is refused; None if it is not."""
        names = [name for name, _ in scope["headers"]]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if names.count(b"host") != 1 or _name(host) not in self._hosts:
            return "Refused: this host name is not the studio's. Open the address that the studio printed."
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return "Refused: the request comes from another site."
        if not headers.get("content-length", "0").isdigit() or int(headers.get("content-length", "0")) > _MAX_BODY:
            return f"Refused: more than {_MAX_BODY >> 20} MB."
        if scope["type"] == "http" and scope["method"] == "POST" and "content-length" not in headers:
            return "Refused: the length of the request is missing."
        if self._token is not None and not any(hmac.compare_digest(t, self._token) for t in _tokens(scope, headers)):
            return "Refused: the token is missing or wrong. Open the whole address that the studio printed."
        return None

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        """Adds headers to the answer: nothing from elsewhere is loaded, and no other site frames these pages."""

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                more = list(_HEADERS)
                if self._token is not None and "token" in parse_qs(scope["query_string"].decode("latin-1")):
                    cookie = f"{_COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                    more.append((b"set-cookie", cookie.encode()))
                message["headers"] = [*message.get("headers", []), *more]
            await send(message)

        return sending


def _name(host: str) -> str | None:
    """Returns the name in a Host header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _tokens(scope: Scope, headers: dict[str, str]) -> list[str]:
    """Returns what a request offers as tokens."""
    offered = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(_COOKIE)
    except CookieError:
        cookie = None
    tokens = [*offered, *([cookie.value] if cookie else [])]
    return [token for token in tokens if token.isascii()]
