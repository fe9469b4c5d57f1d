"""Foreign hosts and origins are refused, over HTTP and websockets; elsewhere a token is asked for."""

import http.client
import socket
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from bathysphere.studio.guard import LOOPBACK, Guard
from tests.studio.browser import watched_page
from tests.studio.conftest import start_server, stop_server

HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"


def ask(url, path="/", method="GET", body=None, **headers):
    """Returns status and text of an answer; `headers` may replace those that the client would send."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    connection.putrequest(method, path, skip_host=True)
    sent = {"Host": place.netloc} | {name.replace("_", "-"): value for name, value in headers.items()}
    for name, value in sent.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    text = "" if answer.status == 101 else answer.read().decode(errors="replace")
    connection.close()
    return answer.status, text


def test_the_studios_own_pages_are_served(server):
    own = f"http://{urlsplit(server).netloc}"
    assert ask(server)[0] == 200
    assert ask(server, Origin=own)[0] == 200
    assert ask(server, SOCKET, Origin=own, **HANDSHAKE)[0] == 101


@pytest.mark.parametrize("path", ["/", SOCKET, "/static/icon.svg"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "localhost.evil.example"},
        {"Host": None},
        {"Host": "[::"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:1"},
        {"Origin": "null"},
    ],
)
def test_foreign_hosts_and_origins_are_refused(server, path, headers):
    rest = HANDSHAKE if path == SOCKET else {}
    status, _ = ask(server, path, **rest, **headers)
    assert status in (400, 403)


def test_a_page_of_another_site_cannot_frame_or_read(server):
    place = urlsplit(server)
    connection = http.client.HTTPConnection(place.hostname, place.port)
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["access-control-allow-origin"] is None
    connection.close()


def test_large_requests_are_refused(server):
    assert ask(server, "/", "POST", Content_Length=str(3 << 20))[0] == 403
    assert ask(server, "/", "POST", Transfer_Encoding="chunked")[0] == 403


def test_elsewhere_a_token_is_asked_for(folder):
    process, url = start_server(folder, "--host", "0.0.0.0")
    try:
        place = urlsplit(url)
        here = f"http://127.0.0.1:{place.port}"
        assert place.query.startswith("token=")
        token = place.query.partition("=")[2]
        assert len(token) >= 32
        assert ask(here)[0] == 403
        assert ask(here, "/?token=wrong")[0] == 403
        assert ask(here, SOCKET, **HANDSHAKE)[0] == 403
        assert ask(here, f"/?token={token}")[0] == 200
        assert ask(here, SOCKET, Cookie=f"bathysphere-studio-token={token}", **HANDSHAKE)[0] == 101
        assert ask(here, f"/?token={token}", Host="evil.example")[0] == 403
    finally:
        stop_server(process)


def test_here_others_cannot_connect(server):
    port = urlsplit(server).port
    addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in addresses - {"127.0.0.1", "127.0.1.1"}:
        with pytest.raises(OSError), socket.create_connection((address, port), timeout=5):
            pass
    assert Guard(None, LOOPBACK).refusal({"type": "http", "method": "GET", "headers": [(b"host", b"::1")]}) is not None


def test_pictures_that_are_asked_for_too_late_are_nothing_and_others_are_not_found(browser, server):
    with watched_page(browser) as (page, problems):
        page.goto(f"{server}/watch?agent=sea-0")
        expect(page.get_by_text("It chooses")).to_be_visible()
        address = urlsplit(server + page.locator("img.board").first.get_attribute("src")).path
        assert ask(server, address)[0] == 200
        assert ask(server, address.replace("/now", "/999999"))[0] == 204
        assert ask(server, "/picture/nobody/now")[0] == 404
        assert not problems
