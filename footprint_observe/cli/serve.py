"""`footprint serve`: a ledger file in a browser, for reading."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
import secrets
import signal
import socket
import sqlite3
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from footprint_observe.cli.options import db_option
from footprint_observe.cli.output import one_line
from footprint_observe.serving.guard import SIGN_IN, Guard
from footprint_observe.serving.site import site
from footprint_observe.store.connect import resolve
from footprint_observe.store.log import log_of

_SHORTEST_TOKEN = 16
_HTTP = 80


@click.command()
@db_option
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The address to listen at."
)
@click.option(
    "--port",
    default=8001,
    show_default=True,
    type=click.IntRange(min=0, max=65535),
    metavar="PORT",
    help="The port; 0 for one that is free.",
)
@click.option(
    "--token-file",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="Ask for the token in this file; FOOTPRINT_TOKEN holds one too.",
)
@click.option(
    "--timeout",
    default=5.0,
    show_default=True,
    type=click.FloatRange(min=0.1, max=3600),
    metavar="SECONDS",
    help="Stop a query after so long.",
)
def serve(*, path: str, host: str, port: int, token_file: Any, timeout: float) -> None:
    """Serve the ledger to a browser: a dashboard, named queries, and any SQL. Needs the extra `datasette`.

    The file is only read. At an address of this machine alone no token is asked for unless one is given, and
    other users of the machine can read it, too. Anywhere else a token is needed: when none is given, one is
    made and printed. It travels as it is, so put TLS in between, or use a tunnel.
    """
    file = resolve(path)
    token = _token(token_file)
    application = site(file, timeout=timeout)
    listening = _listen(host, port)
    is_private = ipaddress.ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback
    is_made = token is None and not is_private
    if is_made:
        token = secrets.token_urlsafe(32)
    port = listening.getsockname()[1]
    guard = Guard(application, hosts=_hosts(port), token=token, cookie=f"footprint-{port}")
    lines = [f"{one_line(file.name)} is served at {_address(listening)}/ until Ctrl-C."]
    if token is not None:
        shown = token if is_made else "..."
        lines.append(f"Sign in: {_address(listening)}{SIGN_IN}?token={shown}")
    # As Ctrl-C. The server puts both off until its last answer is sent, and sends them again then.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        asyncio.run(_run(_server(guard, timeout), listening, lines))
    except KeyboardInterrupt:
        return
    finally:
        _put_log_away(file)


def _token(file: Any) -> str | None:
    """The token that was given, which never stands among the arguments: every user can list those."""
    token = (os.environ.get("FOOTPRINT_TOKEN", "") if file is None else file.read()).strip()
    if file is None and not token:
        return None
    if len(token) < _SHORTEST_TOKEN or not (token.isascii() and token.isprintable()):
        raise click.UsageError(
            f"A token has at least {_SHORTEST_TOKEN} printable ASCII characters; make one, as with `openssl "
            "rand -hex 32`."
        )
    return token


def _listen(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise click.UsageError(
            f"The host {host!r} is not known here; give an address of this machine, like 127.0.0.1."
        ) from None
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        # Here and not in the server, which would find a port that is in use with a traceback.
        listening.listen(128)
    except OSError as error:
        listening.close()
        why = os.strerror(error.errno or 0)
        raise click.UsageError(
            f"Nothing can listen at {host} port {port} ({why}); give another --port or --host."
        ) from None
    return listening


def _hosts(port: int) -> frozenset[str]:
    names = ("localhost", "127.0.0.1", "[::1]")
    # A browser leaves out the port that http has by itself.
    return frozenset((*(f"{name}:{port}" for name in names), *(names if port == _HTTP else ())))


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    if ipaddress.ip_address(host.partition("%")[0]).is_unspecified:
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _run(server: Any, listening: socket.socket, lines: list[str]) -> None:
    # Said in here, where a Ctrl-C from then on ends the server, and not its preparations.
    click.echo("\n".join(lines))
    # Whoever waits for the address reads it through a pipe.
    sys.stdout.flush()
    await server.serve(sockets=[listening])


def _server(guard: Guard, timeout: float) -> Any:
    uvicorn: Any = import_module("uvicorn")
    config = uvicorn.Config(
        guard,
        # Addresses hold questions, and a sign-in link its token.
        access_log=False,
        http="h11",
        lifespan="off",
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=math.ceil(timeout) + 1,
        ws="none",
    )
    return uvicorn.Server(config)


def _put_log_away(path: Path) -> None:
    """Take away the empty log that reading leaves where no process writes: the last that writes does it."""
    log = log_of(path)
    with suppress(OSError, sqlite3.Error):
        if log.stat().st_size == 0:
            connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=0)
            try:
                connection.execute("PRAGMA schema_version").fetchone()
            finally:
                connection.close()
