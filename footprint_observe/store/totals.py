"""Decisions counted by day, rule and outcome, kept as sums so that the count does not grow with the file.

Whenever a block of `BLOCK` fact ids is full, a trigger sums its decisions in the transaction that filled
it; whenever `BLOCKS` of those are full, it sums them again. A question adds up the large blocks, the small
ones behind them, and the few facts behind those. A trigger and not the program, so that whoever appends
keeps the sums, and so that a block can be summed at no other moment (see `guards`). `footprint verify`
counts again.

Every row of the view `decisions` counts, an imported one too: it is a decision of its run, and the file has
it once. A shadow decision refused nothing and asked nobody, so `shadow` tells it apart.
"""

from __future__ import annotations

BLOCK = 4096
"""How many fact ids a block has. Summing one holds a commit up for about 3 ms."""

BLOCKS = 64
"""How many blocks a large block has."""

LARGE = BLOCK * BLOCKS

DAY_US = 86_400_000_000
"""Microseconds of a day."""

GROUP = ("middleware", "version", "moment", "tool_name", "outcome", "shadow")
"""The columns of `facts` that decisions are counted by, each within its day."""

# '' stands for NULL, for rows of a table without a rowid are found by a key that has none.
TOTALS = """
CREATE TABLE decision_totals (
  span INTEGER NOT NULL,    -- how many fact ids the block has
  last_id INTEGER NOT NULL, -- the last of them
  day TEXT NOT NULL,        -- UTC, as 2026-01-31
  middleware TEXT NOT NULL,
  version TEXT NOT NULL,    -- '' for none
  moment TEXT NOT NULL,
  tool_name TEXT NOT NULL,  -- '' for none
  outcome TEXT NOT NULL,
  shadow INTEGER NOT NULL,
  n INTEGER NOT NULL CHECK (n > 0),
  PRIMARY KEY (span, last_id, day, middleware, version, moment, tool_name, outcome, shadow)
) STRICT, WITHOUT ROWID
"""

# SQLite divides towards zero, so a time before 1970 is moved behind it first; none is older than this.
_PAST_DAYS = 110_000
_DAY = f"(recorded_us + {_PAST_DAYS * DAY_US}) / {DAY_US} - {_PAST_DAYS}"

_GROUP = ", ".join(GROUP)
_KEY = f"day, {_GROUP}"


def counted(block: str) -> str:
    """A query for the sums of the facts a condition picks, in the columns of the table from `day` on."""
    # One text sorts faster than seven columns, and in a group of equal texts the columns are equal, too. What
    # is shown of a group is made for each group, and not for each fact.
    return f"""SELECT
  strftime('%Y-%m-%d', day * 86400, 'unixepoch') AS day, middleware, ifnull(version, '') AS version, moment,
  ifnull(tool_name, '') AS tool_name, outcome, shadow, n
FROM (
  SELECT {_DAY} AS day, {_GROUP}, count(*) AS n
  FROM facts WHERE kind = 'decision' AND {block} GROUP BY json_array({_DAY}, {_GROUP})
)"""  # noqa: S608 - constants


def summed(blocks: str) -> str:
    """A query for the sums of the blocks a condition picks, in the columns of the table from `day` on."""
    return f"SELECT {_KEY}, sum(n) AS n FROM decision_totals WHERE {blocks} GROUP BY json_array({_KEY})"  # noqa: S608 - constants


SUMMING = f"""
CREATE TRIGGER facts_totals AFTER INSERT ON facts WHEN NEW.id % {BLOCK} = 0 BEGIN
INSERT INTO decision_totals (span, last_id, {_KEY}, n)
SELECT {BLOCK}, NEW.id, * FROM (
{counted(f"id > NEW.id - {BLOCK} AND id <= NEW.id")}
);
INSERT INTO decision_totals (span, last_id, {_KEY}, n)
SELECT {LARGE}, NEW.id, * FROM (
{summed(f"NEW.id % {LARGE} = 0 AND span = {BLOCK} AND last_id > NEW.id - {LARGE} AND last_id <= NEW.id")}
);
END
"""  # noqa: S608 - constants

_LAST = "(SELECT max(id) FROM facts)"
BY_DAY = f"""
CREATE VIEW decisions_by_day AS
-- How many decisions there were by day (UTC), rule, version, moment, tool and outcome. They are to be added
-- up, for a group has a row for every block: select day, sum(n) from decisions_by_day group by day
SELECT
  day, middleware, nullif(version, '') AS version, moment, nullif(tool_name, '') AS tool_name, outcome,
  shadow, -- 1: only recorded; they refused nothing and asked nobody
  n
FROM (
SELECT {_KEY}, n FROM decision_totals WHERE span = {LARGE}
UNION ALL
SELECT {_KEY}, n FROM decision_totals WHERE span = {BLOCK} AND last_id > {_LAST} / {LARGE} * {LARGE}
UNION ALL
{counted(f"id > {_LAST} / {BLOCK} * {BLOCK}")}
)
"""  # noqa: S608 - constants
"""The view over the sums."""
