"""`footprint serve`: a ledger file in a browser, for reading."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
import os
import secrets
import signal
import socket
import sqlite3
import sys
from collections.abc import Callable
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

_SHORTEST_TOKEN, _LONGEST_TOKEN = 16, 512
_HTTP = 80
# What an answer that is being sent gets when the site ends; its question is stopped.
_LEAVE_SECONDS = 3
_LOOK_SECONDS = 0.1
_KILLED = 130


def _finite(ctx: click.Context, param: click.Parameter, given: float) -> float:
    del ctx, param
    # A range does not refuse it: it is neither smaller nor greater than anything.
    if math.isnan(given):
        raise click.BadParameter("nan is no number of seconds.")
    return given


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
    # What is no text is no token either, and is refused as such.
    type=click.File(encoding="utf-8", errors="replace"),
    metavar="FILE",
    help="Ask for the token in this file; FOOTPRINT_TOKEN holds one too.",
)
@click.option(
    "--timeout",
    default=5.0,
    show_default=True,
    type=click.FloatRange(min=0.1, max=3600),
    callback=_finite,
    metavar="SECONDS",
    help="Stop a query after so long.",
)
def serve(*, path: str, host: str, port: int, token_file: Any, timeout: float) -> None:
    """Serve the ledger to a browser: a dashboard, named queries, and any SQL. Needs the extra `datasette`.

    The file is only read. At an address of this machine alone, or as localhost, no token is asked for unless
    one is given, and other users of the machine can read it, too. Anywhere else a token is needed: when none
    is given, one is made and printed. It travels as it is, so put TLS in between, or use a tunnel.
    """
    file = resolve(path)
    token = _token(token_file)
    served = site(file, timeout=timeout)
    listening = _listen(host, port)
    is_made = token is None and not _is_private(host, listening)
    if is_made:
        token = secrets.token_urlsafe(32)
    address, port = listening.getsockname()[:2]
    hosts = _hosts(host.lower(), address, port=port)
    server = _server(Guard(served.app, hosts=hosts, token=token, cookie=f"footprint-{port}"))
    lines = [f"{one_line(file.name)} is served at {_address(listening)}/ until Ctrl-C."]
    if token is not None:
        shown = token if is_made else "..."
        lines.append(f"Sign in: {_address(listening)}{SIGN_IN}?token={shown}")
    _end_by_signal(server)
    try:
        asyncio.run(_run(server, listening, lines, served.end))
    finally:
        _put_log_away(file)


def _token(file: Any) -> str | None:
    """The token that was given, which never stands among the arguments: every user can list those."""
    given: str = os.environ.get("FOOTPRINT_TOKEN", "") if file is None else file.read(2 * _LONGEST_TOKEN)
    if file is None and not given:
        return None
    token = given.strip()
    is_long_enough = _SHORTEST_TOKEN <= len(token) <= _LONGEST_TOKEN
    if not (is_long_enough and token.isascii() and token.isprintable()):
        raise click.UsageError(
            f"A token has at least {_SHORTEST_TOKEN} printable ASCII characters and at most "
            f"{_LONGEST_TOKEN}; make one, as with `openssl rand -hex 32`."
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


def _is_private(host: str, listening: socket.socket) -> bool:
    """Whether this machine alone reaches the address, and a browser says there which site asks.

    It does so at an address of this machine and at localhost; at another name, even of such an address, not.
    """
    address = ipaddress.ip_address(listening.getsockname()[0].partition("%")[0])
    name = host.lower().rstrip(".")
    return address.is_loopback and (name == "localhost" or name.endswith(".localhost") or _is_number(host))


def _is_number(host: str) -> bool:
    with suppress(OSError, UnicodeError):
        return bool(socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST))
    return False


def _hosts(*given: str, port: int) -> frozenset[str]:
    """What a browser of this machine may call it: by what was given, and as always."""
    names = {f"[{name}]" if ":" in name else name for name in (*given, "localhost", "127.0.0.1", "::1")}
    # A browser leaves out the port that http has by itself.
    return frozenset({f"{name}:{port}" for name in names} | (names if port == _HTTP else set()))


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    if ipaddress.ip_address(host.partition("%")[0]).is_unspecified:
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _run(server: Any, listening: socket.socket, lines: list[str], stop: Callable[[], None]) -> None:
    # Said in here, where a Ctrl-C from then on ends the server, and not its preparations.
    click.echo("\n".join(lines))
    # Whoever waits for the address reads it through a pipe.
    sys.stdout.flush()
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    while not (await asyncio.wait({serving}, timeout=_LOOK_SECONDS))[0]:
        if server.should_exit:
            stop()
    await serving


def _end_by_signal(server: Any) -> None:
    """End by Ctrl-C or SIGTERM: the first stops what is asked and answers so, the second ends all at once."""

    def end(*_signal: object) -> None:
        if server.should_exit:
            os._exit(_KILLED)
        server.should_exit = True
        # Whoever is cut off is none of what a person who ends the site wants to read a traceback of.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)

    # The server itself puts its own in their place while it runs.
    server.handle_exit = end
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, end)


def _server(guard: Guard) -> Any:
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
        timeout_graceful_shutdown=_LEAVE_SECONDS,
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
