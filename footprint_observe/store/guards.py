"""The triggers that make every base table append-only, for every program that opens the file.

`INSERT OR REPLACE` deletes the row in its way without firing delete triggers (while `recursive_triggers`
is off, the default), through any unique key. So an insert is refused when a row with the same key exists,
for every unique key there is. Tables and keys are read from the file, so that none can be forgotten.

A row that was added to the end could still do harm: a value that no row commits to would be believed, or
stand where the next append wants to write, and a row with the greatest id there is would be the last.
"""

from __future__ import annotations

import sqlite3

from footprint_observe.store.totals import BLOCK, LARGE

# SQLite says -1 for an id that was left out, before it gives one.
_OUT_OF_ORDER = "NEW.id <> -1 AND NEW.id <> (SELECT ifnull(max(id), 0) + 1 FROM facts)"
_UNCOMMITTED = (
    "NOT EXISTS (SELECT 1 FROM facts AS f, json_each(f.commitments) AS c "
    "WHERE f.id = NEW.fact_id AND c.key = NEW.field)"
)
# A block is summed in the moment its last row is in; at any other time no sum is due.
_NOT_DUE = (
    f"NEW.span NOT IN ({BLOCK}, {LARGE}) OR NEW.last_id % NEW.span <> 0 "  # noqa: S608 - constants
    "OR NEW.last_id IS NOT (SELECT max(id) FROM facts)"
)
_OPENED = (
    "EXISTS (SELECT 1 FROM facts AS o WHERE o.kind = 'pause.opened' AND o.pause_id = {row}.pause_id "
    "AND o.run_id = {row}.run_id)"
)
# The plus keeps the planner on the index of pauses; it would search the whole run otherwise.
_TAKES_AN_ANSWER = (
    "NOT EXISTS (SELECT 1 FROM facts AS a WHERE a.kind IN ('pause.answered', 'pause.closed') "
    "AND a.pause_id = {row}.pause_id AND +a.run_id = {row}.run_id) "
    "AND NOT EXISTS (SELECT 1 FROM facts AS o JOIN facts AS e ON e.run_id = o.run_id "
    "AND e.position > o.position AND e.kind = 'run.abandoned' "
    "WHERE o.kind = 'pause.opened' AND o.pause_id = {row}.pause_id AND o.run_id = {row}.run_id)"
)
_OPEN_BODY = f"WHEN {_TAKES_AN_ANSWER.format(row='OLD')} "
# What goes with an answer: whoever answers, closes or abandons a pause takes its body away.
_GOES_WHEN = {"pause_bodies": (_OPEN_BODY, "a body goes with its answer")}
_STRAY_BODY = f"WHEN NOT ({_OPENED.format(row='NEW')} AND {_TAKES_AN_ANSWER.format(row='NEW')}) "


def guards(connection: sqlite3.Connection) -> tuple[str, ...]:
    """The `CREATE TRIGGER` statements for the base tables a file has."""
    found: list[str] = []
    for table in base_tables(connection):
        keys = unique_keys(connection, table)
        found += (
            _refusing(table, "no_update", "UPDATE"),
            _refusing(table, "no_delete", "DELETE", *_GOES_WHEN.get(table, ())),
            _refusing(table, "no_replace", "INSERT", f"WHEN {_any_exists(table, keys)} "),
        )
    return tuple(found)


def order_guards() -> tuple[str, ...]:
    """The `CREATE TRIGGER` statements that let only the next row, and the values it commits to, be added."""
    return (
        _refusing("facts", "no_gap", "INSERT", f"WHEN {_OUT_OF_ORDER} ", "a new row follows the last"),
        _refusing("vals", "no_stray", "INSERT", f"WHEN {_UNCOMMITTED} ", "a value is named by its row"),
        _refusing("pause_bodies", "no_stray", "INSERT", _STRAY_BODY, "a body belongs to an open pause"),
        _refusing(
            "decision_totals", "no_stray", "INSERT", f"WHEN {_NOT_DUE} ", "sums are made with the rows"
        ),
    )


def base_tables(connection: sqlite3.Connection) -> tuple[str, ...]:
    """The names of the tables that hold rows, SQLite's own left out."""
    rows = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
        "ORDER BY name"
    )
    return tuple(str(name) for (name,) in rows)


def unique_keys(connection: sqlite3.Connection, table: str) -> tuple[tuple[str, ...], ...]:
    """The columns of every key by which a row of a table can be replaced: primary key and unique indexes."""
    columns = connection.execute(
        "SELECT name, pk FROM pragma_table_xinfo(?) WHERE pk > 0 ORDER BY pk", (table,)
    )
    keys = {tuple(str(name) for name, _ in columns)} - {()}
    indexes = connection.execute('SELECT name FROM pragma_index_list(?) WHERE "unique"', (table,)).fetchall()
    for (index,) in indexes:
        parts = connection.execute("SELECT name FROM pragma_index_info(?) ORDER BY seqno", (index,))
        keys.add(tuple(str(name) for (name,) in parts))
    if _has_hidden_rowid(connection, table):
        keys.add(("rowid",))
    return tuple(sorted(keys))


def _has_hidden_rowid(connection: sqlite3.Connection, table: str) -> bool:
    # A table whose primary key is no integer has a rowid beside it, which OR REPLACE takes as a key too.
    (without_rowid,) = connection.execute("SELECT wr FROM pragma_table_list(?)", (table,)).fetchone()
    if without_rowid:
        return False
    keys = connection.execute(
        "SELECT upper(type) FROM pragma_table_xinfo(?) WHERE pk > 0", (table,)
    ).fetchall()
    return keys != [("INTEGER",)]


def _refusing(
    table: str, name: str, verb: str, when: str = "", why: str = "rows are never rewritten or deleted"
) -> str:
    reason = f"footprint: {table} is append-only; {why}"
    return (
        f"CREATE TRIGGER {table}_{name} BEFORE {verb} ON {table} {when}"
        f"BEGIN SELECT RAISE(ABORT, '{reason}'); END"
    )


def _any_exists(table: str, keys: tuple[tuple[str, ...], ...]) -> str:
    same = (" AND ".join(f"{column} = NEW.{column}" for column in key) for key in keys)
    return " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE {condition})" for condition in same)  # noqa: S608 - names read from the schema
