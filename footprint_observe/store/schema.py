"""The tables of a ledger file, their indexes, and how a new file gets them.

`facts` has one row for every entry; `vals` has what may be redacted, sealed or erased of it. A fact's row
commits to its values without holding them (see `hashing`), so a value can go and the row stays provable.
Only columns that are asked about are columns; the rest of a fact is JSON in `extra`.

A partial index is written only for the rows it is about, so those below cost an ordinary row nothing.
Counting decisions by rule and day is not served by one: at ten million rows even an index that holds all
it asks about takes seconds, so sums are kept (see `totals`). The SQL is at the level of SQLite 3.37.
"""

from __future__ import annotations

import sqlite3

from footprint_observe.store.guards import guards, order_guards
from footprint_observe.store.totals import BY_DAY, SUMMING, TOTALS
from footprint_observe.store.views import VIEWS

APPLICATION_ID = 0x46505254
"""What `PRAGMA application_id` says of a ledger file: "FPRT"."""

VERSION = 1
"""What `PRAGMA user_version` says: the schema this release reads and writes."""

HASHED_COLUMNS: tuple[str, ...] = (
    "after_approval",
    "answer",
    "at",
    "changed",
    "commitments",
    "conversation_id",
    "duration_us",
    "error_class",
    "extra",
    "iteration",
    "kind",
    "middleware",
    "moment",
    "outcome",
    "pause_id",
    "phase",
    "position",
    "recorded_us",
    "redacted",
    "run_id",
    "segment",
    "shadow",
    "span_id",
    "status",
    "tool_call_id",
    "tool_name",
    "tool_source",
    "trace_id",
    "version",
)
"""The columns a row's hash is over, sorted: all that are stored, but `id`, `prev_hash` and `hash`."""

_FACTS = """
CREATE TABLE facts (
  id INTEGER PRIMARY KEY CHECK (id >= 1),        -- order of the file, from 1, without gaps
  run_id TEXT NOT NULL,
  segment INTEGER NOT NULL,
  position INTEGER NOT NULL CHECK (position >= 1), -- place in the run, from 1, without gaps
  kind TEXT NOT NULL,
  recorded_us INTEGER NOT NULL, -- microseconds since 1970, UTC, when it was noted
  moment TEXT,
  at TEXT,             -- the older spelling: tool or message
  phase TEXT,          -- the moment, of decisions about messages
  middleware TEXT,
  version TEXT,
  outcome TEXT,        -- of a decision: allow, deny, ask; of a segment.ended: how the segment ended
  changed INTEGER,
  answer TEXT,         -- of a decision: how it came about; of a pause.answered: what the person said
  shadow INTEGER,
  after_approval INTEGER,
  tool_name TEXT,
  tool_source TEXT,
  tool_call_id TEXT,
  iteration INTEGER,
  duration_us INTEGER,
  error_class TEXT,
  status TEXT,
  conversation_id TEXT,
  pause_id TEXT,
  trace_id TEXT,
  span_id TEXT,
  extra TEXT,          -- JSON: the other fields, those at their default left out
  redacted TEXT,       -- JSON: [path, method] of everything that was redacted
  commitments TEXT,    -- JSON: by field, the salted commitment to its value in vals, hex
  prev_hash BLOB NOT NULL, -- of the run's row before; zeros for its first
  hash BLOB NOT NULL,
  UNIQUE (run_id, position)
) STRICT
"""

_VALS = """
CREATE TABLE vals (
  fact_id INTEGER NOT NULL REFERENCES facts (id),
  field TEXT NOT NULL,
  json TEXT NOT NULL,  -- the value; the commitment is over exactly these bytes
  salt BLOB NOT NULL,
  PRIMARY KEY (fact_id, field)
) STRICT, WITHOUT ROWID
"""

_PAUSE_BODIES = """
CREATE TABLE pause_bodies (
  pause_id TEXT PRIMARY KEY, -- a question that is open; its row goes when it is answered
  run_id TEXT NOT NULL,
  key_id TEXT NOT NULL,      -- which key of the ring it is sealed with
  nonce BLOB NOT NULL,
  body BLOB NOT NULL         -- AES-256-GCM over the checkpoint without its rows
) STRICT, WITHOUT ROWID
"""

TABLES: tuple[str, ...] = (_FACTS, _VALS, _PAUSE_BODIES, TOTALS)
"""The base tables."""

INDEXES: tuple[str, ...] = (
    "CREATE INDEX facts_runs ON facts (id, recorded_us) WHERE kind = 'run.configured'",
    "CREATE INDEX facts_conversations ON facts (conversation_id) WHERE conversation_id IS NOT NULL",
    "CREATE INDEX facts_pauses ON facts (kind, pause_id) WHERE pause_id IS NOT NULL",
    "CREATE INDEX facts_abandoned ON facts (run_id, position) WHERE kind = 'run.abandoned'",
    "CREATE INDEX facts_denials ON facts (id) WHERE kind = 'decision' AND outcome = 'deny'",
    "CREATE INDEX vals_disclosures ON vals (field) WHERE instr(field, '.') > 0",
    "CREATE INDEX vals_people ON vals (json) WHERE field = 'decided_by'",
    "CREATE INDEX pause_bodies_runs ON pause_bodies (run_id)",
)
"""Latest runs; of a conversation; pauses; given up; denials; what was cut out; who decided; kept pauses."""


def create(connection: sqlite3.Connection) -> None:
    """Write the schema into an empty file, inside the transaction the caller has begun."""
    for statement in (*TABLES, *INDEXES):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    renew(connection)


def renew(connection: sqlite3.Connection) -> None:
    """Write this release's triggers and views in the place of older ones, inside the caller's transaction."""
    for statement in (*guards(connection), *order_guards(), SUMMING, *VIEWS, BY_DAY):
        _, kind, name, *_ = statement.split(maxsplit=3)
        connection.execute(f"DROP {kind} IF EXISTS {name}")
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
