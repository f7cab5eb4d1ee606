"""Datasette over one ledger file: what it may do, how it opens the file, and what it shows of it.

Datasette keeps a connection open for each of its threads. Here every question has one of its own, opened as
all readers of a ledger are: an idle site then holds no file, so that a writer that closes can put its log
away, and a file that was replaced is looked at anew. That takes about a millisecond.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from footprint_core.errors import BuilderError, LedgerError
from footprint_observe.query.sql import here_only
from footprint_observe.serving import links, refusals
from footprint_observe.serving.guard import App
from footprint_observe.shipped import dashboards
from footprint_observe.store.connect import open_reader

T = TypeVar("T")

NAME = "ledger"
"""What the file is called in addresses and in the metadata, whatever its own name is."""

MAX_ROWS = 1000
"""How many rows an answer has."""

# A count of all rows of a view reads the whole file; a page is not to wait for one.
_COUNT_MS = 100
# SQLite looks at the clock between its steps, and one may make a value as long as this. The values of
# an answer are together not longer.
_ANSWER_BYTES = 32 * 1024 * 1024
# What SQLite holds at any time for all questions.
_HEAP_BYTES = 256 * 1024 * 1024
_SETTINGS: dict[str, object] = {
    "allow_csv_stream": False,
    "allow_download": False,
    # A facet groups all rows of a table.
    "allow_facet": False,
    "default_cache_ttl": 0,
    "max_returned_rows": MAX_ROWS,
    "suggest_facets": False,
    "truncate_cells_html": 400,
}
_PLUGIN = "datasette-dashboards"
_CLOSING = "This site is closing."


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The site of a ledger file.

    Attributes:
        app: What answers, as an ASGI application.
        end: Stops the questions that are being asked, and refuses those that follow. SQLite does not hear it
            where one is just about to start, so call it until the site has ended.
    """

    app: App
    end: Callable[[], None]


def site(path: Path, *, timeout: float) -> Site:
    """The site of a ledger file.

    Args:
        path: The file, absolute.
        timeout: Seconds after which a question is stopped.

    Raises:
        BuilderError: Datasette, or its plugin for dashboards, is not installed.
        LedgerOpenError: There is no ledger at that path.
    """
    app = _datasette()
    open_reader(path).close()
    folder = dashboards() / "datasette"
    datasette: Any = app.Datasette(
        files=[],
        metadata=_metadata(folder, path),
        settings={**_SETTINGS, "sql_time_limit_ms": round(timeout * 1000)},
        template_dir=str(folder / "templates"),
        static_mounts=[("footprint", str(folder / "static"))],
    )
    datasette.remove_database("_memory")
    database: Any = app.Database(datasette, str(path), is_mutable=True)
    questions = _Questions(path, datasette, database)
    database.connect = questions.refuse
    database.execute = questions.execute
    database.execute_fn = questions.execute_fn
    datasette.add_database(database, name=NAME)
    return Site(app=datasette.app(), end=questions.end)


def _datasette() -> Any:
    try:
        app: Any = import_module("datasette.app")
        import_module("datasette_dashboards")
    except ModuleNotFoundError as error:
        raise BuilderError(
            f"`footprint serve` needs Datasette, of which {error.name} is missing; install "
            "footprint-ledger[datasette]."
        ) from None
    # Others may open the site for other sites, or write.
    manager: Any = app.pm
    for plugin, distribution in manager.list_plugin_distinfo():
        if distribution.project_name != _PLUGIN and manager.is_registered(plugin):
            manager.unregister(plugin)
    # Where rich is installed, Datasette prints the local variables of whatever failed: rows, on a terminal.
    failing: Any = import_module("datasette.handle_exception")
    failing.rich = None
    if not manager.is_registered(links):
        # Ours calls it; by itself it would print a traceback, too.
        manager.unregister(failing)
        hook: Any = import_module("datasette").hookimpl
        for ours, hooks in ((links, ["render_cell"]), (refusals, ["register_routes", "handle_exception"])):
            for name in hooks:
                hook(getattr(ours, name))
            manager.register(ours)
    return app


def _metadata(folder: Path, path: Path) -> dict[str, Any]:
    utils: Any = import_module("datasette.utils")
    metadata: dict[str, Any] = {}
    for name in ("metadata.yaml", "governance.yaml"):
        metadata |= utils.parse_metadata((folder / name).read_text(encoding="utf-8"))
    metadata["databases"][NAME]["source"] = path.name
    return metadata


class _Questions:
    """Stands in for the methods with which Datasette asks a file."""

    def __init__(self, path: Path, datasette: Any, database: Any) -> None:
        self._path = path
        self._datasette = datasette
        self._asked = database.execute
        self._refusal: Any = import_module("datasette.views.base").DatasetteError
        self._running: set[sqlite3.Connection] = set()
        self._lock = threading.Lock()
        self._is_ending = False

    def end(self) -> None:
        """Stop what runs, and refuse what follows."""
        with self._lock:
            self._is_ending = True
            for connection in self._running:
                connection.interrupt()

    def refuse(self, *_args: Any, **_options: Any) -> Any:
        """Stand in for `connect`, which Datasette calls by itself only to write."""
        raise self._refusal("A ledger is only read here.", status=403)

    async def execute_fn(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Give a function a connection of its own, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(
            self._datasette.executor, self._given_a_connection, function
        )

    async def execute(self, sql: str, params: Any = None, **options: Any) -> Any:
        """Ask for rows."""
        if not options.get("truncate") and sql.startswith("select count(*) from"):
            options["custom_time_limit"] = _COUNT_MS
        # Datasette prints a question that fails, with the values it was asked with.
        return await self._asked(sql, params, **{**options, "log_sql_errors": False})

    def _given_a_connection(self, function: Callable[[sqlite3.Connection], T]) -> T:
        if self._is_ending:
            raise self._refusal(_CLOSING, status=503)
        try:
            connection = open_reader(self._path)
        except LedgerError as error:
            raise self._refusal(str(error), status=503, title="The ledger cannot be read") from None
        try:
            self._prepare(connection)
            return function(connection)
        except BaseException as error:
            # A cursor in them would keep the file open until the garbage is collected.
            traceback.clear_frames(error.__traceback__)
            if self._is_ending:
                raise self._refusal(_CLOSING, status=503) from None
            if isinstance(error, MemoryError):
                raise sqlite3.OperationalError("it takes too much memory; ask for less") from None
            raise
        finally:
            with self._lock:
                self._running.discard(connection)
            connection.close()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA hard_heap_limit = {_HEAP_BYTES}")
        connection.row_factory = _Bounded().row
        connection.text_factory = _text
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _ANSWER_BYTES)
        connection.set_authorizer(here_only)
        with self._lock:
            self._running.add(connection)


class _Bounded:
    """Makes the rows of an answer, as long as there is room for them."""

    def __init__(self) -> None:
        self._left = _ANSWER_BYTES

    def row(self, cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> sqlite3.Row:
        """One row.

        Raises:
            sqlite3.OperationalError: With it, the answer is too long.
        """
        self._left -= sum(map(sys.getsizeof, values))
        if self._left < 0:
            raise sqlite3.OperationalError(
                f"the answer is longer than {_ANSWER_BYTES >> 20} MiB; ask for fewer rows or columns"
            )
        return sqlite3.Row(cursor, values)


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
