"""The server of the page, which runs until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from cbo_gym.errors import ArgumentError, OperationError
from cbo_gym.study.page.access import MIN_TOKEN, AccessPolicy, is_loopback
from cbo_gym.study.page.agent_pool import THINK_SECONDS, AgentPool
from cbo_gym.study.page.application import make_app
from cbo_gym.study.page.service import StudyService

MAX_CONNECTIONS = 100
# Seconds within which a connection must send the head of its next request.
SILENCE_SECONDS = 10.0


class Connection(H11Protocol):
    """Connection that is closed if no request comes, because idle connections count towards MAX_CONNECTIONS."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_request(self.cycle)

    def on_response_complete(self) -> None:
        last_cycle = self.cycle
        super().on_response_complete()
        self._wait_for_request(last_cycle)

    def _wait_for_request(self, last_cycle: Any) -> None:
        # The protocol has a new cycle as soon as a request comes.
        def close() -> None:
            if self.cycle is last_cycle:
                self.transport.close()

        self.loop.call_later(SILENCE_SECONDS, close)


def serve(
    storage: Path | str,
    *,
    host: str = "127.0.0.1",
    port: int = 8400,
    token: str | None = None,
    trusted: Collection[str] = (),
    think_seconds: float = THINK_SECONDS,
    browser: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the page of a database's studies until the process is interrupted.

    Args:
        storage: path of a SQLite file, or any URL of SQLAlchemy; a missing file is created with the first study.
        host: the address to listen on.
        port: the port to listen on; 0 for a free one.
        token: the token for logging in, at least 16 characters. If it is None, a new token is announced; on the
            loopback address no token is needed then.
        trusted: import paths of agents whose code may be run.
        think_seconds: time limit of an agent in seconds, after which its process is ended.
        browser: whether to open the page in a browser.
        say: called with each line of the announcement.

    Raises:
        ArgumentError: for a token that is too short, or ``think_seconds`` that is not a finite number above 0.
        OperationError: if the server cannot listen on the address, or cannot read the database.
    """
    if token is not None and len(token) < MIN_TOKEN:
        raise ArgumentError(f"the token must have at least {MIN_TOKEN} characters; given {len(token)}")
    new_token = None if token is not None or is_loopback(host) else secrets.token_urlsafe(24)
    pool = AgentPool(think_seconds)
    service = StudyService(storage, pool, trusted)
    # Raise the error of a database that cannot be read now, instead of showing it in the browser.
    service.names()
    with _listening(host, port) as listener:
        url_host = f"[{host}]" if ":" in host else host
        address = f"http://{url_host}:{listener.getsockname()[1]}"
        say(f"{service.database_name} is served at {address}; Ctrl-C stops it")
        if new_token is not None:
            say(f"log in with the token {new_token}")
        app = make_app(service, AccessPolicy(host, token or new_token))
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            http=Connection,
            ws="none",
            limit_concurrency=MAX_CONNECTIONS,
        )
        if browser:
            webbrowser.open(address)
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            pool.close()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise OperationError(
            f"cannot listen on {host} port {port}: {reason}; choose another with --port, 0 takes a free one"
        ) from error
