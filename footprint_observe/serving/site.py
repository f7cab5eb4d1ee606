"""Datasette over one ledger file: what it may do, how it opens the file, and what it shows of it.

Datasette keeps a connection open for each of its threads. Here every question has one of its own, opened as
all readers of a ledger are: an idle site then holds no file, so that a writer that closes can put its log
away, and a file that was replaced is looked at anew. That takes about a millisecond.
"""

from __future__ import annotations

import asyncio
import sqlite3
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from footprint_core.errors import BuilderError, LedgerError
from footprint_observe.query.sql import here_only
from footprint_observe.serving import links
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
# SQLite looks at the clock between its steps, and a single one may make a value as long as this.
_LONGEST = 64 * 1024 * 1024
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


def site(path: Path, *, timeout: float) -> App:
    """The site of a ledger file, as an ASGI application.

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
    application: App = datasette.app()
    return application


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
    if not manager.is_registered(links):
        import_module("datasette").hookimpl(links.render_cell)
        manager.register(links)
    # Where rich is installed, Datasette prints the local variables of whatever failed: rows, on a terminal.
    failing: Any = import_module("datasette.handle_exception")
    failing.rich = None
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
        try:
            connection = open_reader(self._path)
        except LedgerError as error:
            raise self._refusal(str(error), status=503, title="The ledger cannot be read") from None
        try:
            connection.row_factory = sqlite3.Row
            connection.text_factory = _text
            connection.set_authorizer(here_only)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
            return function(connection)
        except BaseException as error:
            # A cursor in them would keep the file open until the garbage is collected.
            traceback.clear_frames(error.__traceback__)
            raise
        finally:
            connection.close()


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
