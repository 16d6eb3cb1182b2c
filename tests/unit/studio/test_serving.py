"""Connections of others, who can all reach the port, keep nobody out."""

import asyncio
import socket
import ssl
import time
from contextlib import ExitStack, closing, suppress
from threading import Thread
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import uvicorn
from starlette.applications import Starlette
from studios import served

from dbanon.studio import serving

IDLE = 0.5  # seconds in which a request must be complete
MOST_IDLE = 4
REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n"


async def answer_late(_scope, receive, send):
    """Answer after twice the time in which a request must be complete."""
    await receive()
    await asyncio.sleep(2 * IDLE)
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def connect(monkeypatch):
    """Return what connects to a server with few and short idle connections."""
    monkeypatch.setattr(serving, "_IDLE", IDLE)
    monkeypatch.setattr(serving, "_MOST_IDLE", MOST_IDLE)
    with closing(serving.bound(serving.LOCAL, 0)) as listening:
        listening.listen()
        config = uvicorn.Config(
            answer_late, http=serving.Connection, lifespan="off", log_config=None, loop="asyncio"
        )
        server = uvicorn.Server(config)
        listening.connections = server.server_state.connections
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        address, made = listening.getsockname(), []

        def connect():
            made.append(socket.create_connection(address, timeout=20))
            return made[-1]

        yield connect
        for one in made:
            one.close()
        server.should_exit = True
        thread.join(20)


def test_a_request_that_is_never_complete_is_closed_however_often_more_of_it_comes(connect):
    slow = connect()
    slow.sendall(REQUEST)
    slow.settimeout(0.1)
    began, answered = time.monotonic(), None
    while answered is None and time.monotonic() - began < 20:
        with suppress(TimeoutError):
            answered = slow.recv(1)
        with suppress(OSError):
            slow.sendall(b"More: of it\r\n")
    assert b"" == answered
    assert time.monotonic() - began > IDLE / 2


def test_a_complete_request_is_answered_however_long_that_takes(connect):
    asking = connect()
    asking.sendall(REQUEST + b"\r\n")
    assert asking.recv(100).startswith(b"HTTP/1.1 204")


def test_of_too_many_idle_connections_the_oldest_is_closed_and_no_request(connect):
    asking = connect()
    asking.sendall(REQUEST + b"\r\n")
    time.sleep(0.1)  # it is complete by then
    idle = [connect() for _ in range(MOST_IDLE + 1)]
    idle[0].settimeout(IDLE / 2)
    assert b"" == idle[0].recv(1)
    assert asking.recv(100).startswith(b"HTTP/1.1 204")


def test_a_connection_is_accepted_while_another_one_ends():
    ended = SimpleNamespace(transport=SimpleNamespace(get_extra_info=lambda _: None))
    with closing(serving.bound(serving.LOCAL, 0)) as listening:
        listening.listen()
        listening.connections = [ended]
        with socket.create_connection(listening.getsockname(), timeout=20) as other:
            accepted, _ = listening.accept()
            with accepted:
                assert accepted.getpeername() == other.getsockname()


def test_a_handshake_that_is_never_complete_is_closed(monkeypatch, certificate):
    monkeypatch.setattr(serving, "_IDLE", IDLE)
    monkeypatch.setattr(serving, "make", lambda *_: Starlette())
    with served(monkeypatch, None, tls=certificate) as access:
        place = urlsplit(access.origin)
        with socket.create_connection((place.hostname, place.port), timeout=20) as silent:
            began = time.monotonic()
            assert b"" == silent.recv(1)
            assert IDLE / 2 < time.monotonic() - began


def test_of_too_many_handshakes_the_oldest_is_closed_and_no_connection(monkeypatch, certificate):
    monkeypatch.setattr(serving, "_MOST_IDLE", MOST_IDLE)
    monkeypatch.setattr(serving, "make", lambda *_: Starlette())
    trusted = ssl.create_default_context(cafile=certificate[0])
    trusted.check_hostname = False
    with served(monkeypatch, None, tls=certificate) as access, ExitStack() as opened:
        place = urlsplit(access.origin)

        def connect():
            made = socket.create_connection((place.hostname, place.port), timeout=4)
            return opened.enter_context(made)

        asking = opened.enter_context(trusted.wrap_socket(connect()))
        silent = [connect() for _ in range(MOST_IDLE + 1)]
        assert b"" == silent[0].recv(1)
        asking.sendall(REQUEST + b"\r\n")
        assert asking.recv(100).startswith(b"HTTP/1.1 404")
