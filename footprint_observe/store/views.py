"""What a person asks a ledger file for: documented views, readable with the plain `sqlite3` command.

Times are ISO 8601 text in UTC, durations whole microseconds, `before`, `after`, `detail`, `args` and
`result` JSON text (so `json_extract` works on every row), `why`, `decided_by`, `question` and `text` plain
text (JSON text where there is a NUL in it, at which SQLite would cut it). A value that was erased is NULL.
Where a policy declares a path erasable, `{"...": digest}` stands in a value and what it stands for is in
`disclosures`. Order by `id`, which is the order of the file.
"""

from __future__ import annotations


def _iso(column: str) -> str:
    whole = f"strftime('%Y-%m-%dT%H:%M:%S', {column} / 1000000, 'unixepoch')"
    return f"{whole} || printf('.%06d+00:00', {column} % 1000000)"


def _json(fact: str, field: str) -> str:
    return f"(SELECT v.json FROM vals AS v WHERE v.fact_id = {fact}.id AND v.field = '{field}')"  # noqa: S608 - constants


# SQLite cuts a text at its first NUL, and what is behind it must not be lost: such a text stays JSON. Without
# its escaped backslashes, JSON has these six characters only for a NUL.
_WHOLE = (
    r"CASE WHEN instr(v.json, '\u0000') AND instr(replace(v.json, '\\', ''), '\u0000') "
    "THEN v.json ELSE json_extract(v.json, '$') END"
)


def _text(fact: str, field: str) -> str:
    return f"(SELECT {_WHOLE} FROM vals AS v WHERE v.fact_id = {fact}.id AND v.field = '{field}')"  # noqa: S608 - constants


_DECISIONS = f"""
CREATE VIEW decisions AS
-- What one rule, or one person, decided once. Where {{"...": digest}} stands in a value, what was there can
-- be erased alone, and is in the view disclosures.
SELECT
  f.id, f.run_id, f.segment, f.position,
  {_iso("f.recorded_us")} AS recorded_at,
  f.moment, f.at, f.phase, f.middleware, f.version,
  f.outcome,           -- allow, deny or ask
  f.changed,           -- 1: what went on differs from what came
  f.answer,            -- given, raised, timed-out, malformed or person
  {_text("f", "why")} AS why,
  {_json("f", "before")} AS before,
  {_json("f", "after")} AS after,
  {_json("f", "detail")} AS detail,
  {_text("f", "decided_by")} AS decided_by,
  f.tool_name, f.tool_source, f.tool_call_id, f.iteration,
  f.duration_us, f.error_class,
  f.shadow,            -- 1: only recorded
  f.after_approval,    -- 1: changed args that a person had approved
  json_extract(f.extra, '$.imported') IS NOT NULL AS imported, -- 1: another ledger filed it
  f.redacted, f.trace_id, f.span_id
FROM facts AS f
WHERE f.kind = 'decision'
"""  # noqa: S608 - constants

# The last row of a run answers how far it came; its last segment.ended how it ended. Both are found from
# the end of the run through the key (run_id, position).
_LAST_END = """(
  SELECT e.id FROM facts AS e WHERE e.run_id = f.run_id AND e.kind = 'segment.ended'
  ORDER BY e.position DESC LIMIT 1
)"""

_LAST_SEGMENT = (
    "(SELECT l.segment FROM facts AS l WHERE l.run_id = f.run_id ORDER BY l.position DESC LIMIT 1)"
)


# The plus keeps the planner on the run's own rows: the index of all denials looks selective to it.
def _count(condition: str) -> str:
    return f"(SELECT count(*) FROM facts AS d WHERE d.run_id = f.run_id AND d.kind = 'decision'{condition})"  # noqa: S608 - constants


_RUNS = f"""
CREATE VIEW runs AS
-- One row a run. `id` is its first row, so ordering by id is ordering by start.
SELECT
  f.id, f.run_id, f.conversation_id,
  json_extract(f.extra, '$.agent_name') AS agent,
  json_extract(f.extra, '$.model') AS model,
  {_iso("f.recorded_us")} AS started_at,
  CASE WHEN end.segment = {_LAST_SEGMENT} THEN {_iso("end.recorded_us")} END AS ended_at,
  {_LAST_SEGMENT} AS segments,
  -- how the last segment ended; 'open' while it has not
  CASE WHEN end.segment = {_LAST_SEGMENT} THEN end.outcome ELSE 'open' END AS outcome,
  json_extract(end.extra, '$.iterations') AS iterations,
  json_extract(end.extra, '$.input_tokens') AS input_tokens,
  json_extract(end.extra, '$.output_tokens') AS output_tokens,
  {_count("")} AS decisions,
  -- a shadow decision refused nothing and asked nobody
  {_count(" AND +d.outcome = 'deny' AND d.shadow = 0")} AS denials,
  {_count(" AND +d.outcome = 'ask' AND d.shadow = 0")} AS asks,
  json_extract(f.extra, '$.follows') AS follows,
  (SELECT {_WHOLE} FROM vals AS v WHERE v.field = 'text' AND v.fact_id = (
    SELECT m.id FROM facts AS m WHERE m.run_id = f.run_id AND m.kind = 'message.taken'
    ORDER BY m.position LIMIT 1
  )) AS question,
  {_text("end", "text")} AS text
FROM facts AS f
LEFT JOIN facts AS end ON end.id = {_LAST_END}
WHERE f.kind = 'run.configured' AND NOT EXISTS (
  SELECT 1 FROM facts AS b
  WHERE b.run_id = f.run_id AND b.kind = 'run.configured' AND b.position < f.position
)
"""  # noqa: S608 - constants


# A call's rows lie between its call.taken and the end of its iteration, so a search stops there: without
# the bound, a call that was refused would be searched for through the rest of its run.
def _of_call(kind: str, order: str) -> str:
    return f"""(
  SELECT x.id FROM facts AS x
  WHERE x.run_id = c.run_id AND x.position > c.position
    AND x.position < ifnull((
      SELECT i.position FROM facts AS i
      WHERE i.run_id = c.run_id AND i.position > c.position AND i.kind = 'iteration.ended'
      ORDER BY i.position LIMIT 1
    ), 9223372036854775807)
    AND x.kind = '{kind}' AND x.iteration = c.iteration AND x.tool_call_id = c.tool_call_id
  ORDER BY x.position {order} LIMIT 1
)"""  # noqa: S608 - constants


_CANCELLED = "ifnull(json_extract(r.extra, '$.cancelled'), 0)"

_TOOL_CALLS = f"""
CREATE VIEW tool_calls AS
-- One row for every call the model asked for, whether it ran or not.
SELECT
  c.id, c.run_id, c.segment, c.position,
  {_iso("c.recorded_us")} AS recorded_at,
  c.iteration, c.tool_call_id, c.tool_name, c.tool_source,
  {_json("t", "args")} AS args,        -- the args that ran, or were about to
  {_json("r", "result")} AS result,    -- the tool's own result, as it came
  -- ran, failed, denied, invalid, unknown, blocked or cancelled; NULL while a person is asked
  CASE
    WHEN a.status IS NOT NULL THEN a.status
    WHEN r.id IS NULL THEN NULL
    WHEN {_CANCELLED} THEN 'cancelled'
    WHEN json_extract(r.extra, '$.failed') THEN 'failed'
    ELSE 'ran'
  END AS status,
  ifnull(json_extract(a.extra, '$.executed'), CASE WHEN r.id IS NOT NULL THEN 1 END) AS executed,
  json_extract(a.extra, '$.decided_by_rule') AS decided_by_rule,
  ifnull(r.error_class, a.error_class) AS error_class,
  r.duration_us,
  -- 1: it may have run, for it was about to and was never heard of again, or was cancelled meanwhile; also
  -- when its run was recovered, and the model told so
  t.id IS NOT NULL AND CASE
    WHEN a.id IS NULL THEN h.id IS NULL AND (r.id IS NULL OR {_CANCELLED})
    ELSE r.id IS NULL AND a.status = 'blocked'
  END AS in_doubt,
  c.trace_id, c.span_id
FROM facts AS c
LEFT JOIN facts AS t ON t.id = {_of_call("tool.intended", "")}
LEFT JOIN facts AS r ON r.id = {_of_call("tool.finished", "DESC")}
LEFT JOIN facts AS a ON a.id = {_of_call("call.answered", "DESC")}
LEFT JOIN facts AS h ON h.id = {_of_call("tool.paused", "")}
WHERE c.kind = 'call.taken'
"""  # noqa: S608 - constants

_MODEL_CALLS = f"""
CREATE VIEW model_calls AS
-- One row for every request to the model. What came next for it is its reply, its failure, or after a
-- crash the same request again, which has none of the columns below.
SELECT
  q.id, q.run_id, q.segment, q.position,
  {_iso("q.recorded_us")} AS recorded_at,
  q.iteration,
  json_extract(q.extra, '$.provider') AS provider,
  json_extract(q.extra, '$.model') AS model,
  json_extract(q.extra, '$.messages') AS messages,
  json_extract(r.extra, '$.response_model') AS response_model,
  json_extract(r.extra, '$.response_id') AS response_id,
  json_extract(r.extra, '$.stop_reason') AS stop_reason,
  json_extract(r.extra, '$.route') AS route,
  json_extract(r.extra, '$.call_count') AS calls,
  json_extract(r.extra, '$.usage.input') AS input_tokens,
  json_extract(r.extra, '$.usage.output') AS output_tokens,
  {_text("r", "text")} AS text,
  r.duration_us, r.error_class,
  q.trace_id, q.span_id
FROM facts AS q
LEFT JOIN facts AS r ON r.id = (
  SELECT n.id FROM facts AS n
  WHERE n.run_id = q.run_id AND n.position > q.position
    AND n.kind IN ('model.asked', 'model.replied', 'model.failed')
  ORDER BY n.position LIMIT 1
)
WHERE q.kind = 'model.asked'
"""  # noqa: S608 - constants

_PAUSES = f"""
CREATE VIEW pauses AS
-- One row for every question to a person.
SELECT
  p.id, p.run_id, p.segment, p.position,
  {_iso("p.recorded_us")} AS opened_at,
  p.pause_id,
  json_extract(p.extra, '$.pause_kind') AS kind,  -- ask, check-in or human
  p.iteration, p.tool_name, p.tool_source, p.tool_call_id, p.middleware,
  {_iso("json_extract(p.extra, '$.expires_us')")} AS expires_at,
  a.answer,                            -- approved, declined or value; NULL while nobody answered
  {_iso("a.recorded_us")} AS answered_at,
  json_extract(a.extra, '$.paused_us') AS paused_us,
  -- 1: a person can still answer; a pause that was closed and an abandoned run take no answer
  a.id IS NULL AND NOT EXISTS (
    SELECT 1 FROM facts AS x
    WHERE x.kind = 'pause.closed' AND x.pause_id = p.pause_id AND x.run_id = p.run_id
  ) AND NOT EXISTS (
    SELECT 1 FROM facts AS e WHERE e.run_id = p.run_id AND e.position > p.position
      AND e.kind = 'run.abandoned'
  ) AS open,
  p.trace_id, p.span_id
FROM facts AS p
LEFT JOIN facts AS a ON a.id = (
  SELECT min(x.id) FROM facts AS x
  WHERE x.kind = 'pause.answered' AND x.pause_id = p.pause_id AND x.run_id = p.run_id
)
WHERE p.kind = 'pause.opened' AND p.pause_id IS NOT NULL
"""  # noqa: S608 - constants

_WINDOW_RECORDS = f"""
CREATE VIEW window_records AS
-- One row for every visit at which a window strategy engaged.
SELECT
  f.id, f.run_id, f.segment, f.position,
  {_iso("f.recorded_us")} AS recorded_at,
  f.iteration,
  json_extract(f.extra, '$.strategy') AS strategy,
  json_extract(f.extra, '$.removed_messages') AS removed_messages,
  json_extract(f.extra, '$.removed') AS removed,
  json_extract(f.extra, '$.refusals') AS refusals,
  json_extract(f.extra, '$.refusals_more') AS refusals_more,
  json_extract(f.extra, '$.dropped_observations') AS dropped_observations,
  json_extract(f.extra, '$.pinned') AS pinned,
  json_extract(f.extra, '$.yielded') AS yielded,
  json_extract(f.extra, '$.stand_down') AS stand_down,
  json_extract(f.extra, '$.figures') AS figures,
  -- the iteration of an earlier record of the run that this one repeats; its refusals are there
  json_extract(f.extra, '$.same_as') AS same_as,
  json_extract(f.extra, '$.pressure') AS pressure,
  {_text("f", "notice")} AS notice,
  {_text("f", "summary")} AS summary,
  f.trace_id, f.span_id
FROM facts AS f
WHERE f.kind = 'window.visited'
"""  # noqa: S608 - constants

_DISCLOSURES = """
CREATE VIEW disclosures AS
-- One row for every value that was cut out of another one, so that it can be erased alone, and is there.
SELECT
  v.fact_id, f.run_id, f.kind,
  substr(v.field, 1, instr(v.field, '.') - 1) AS field, -- the value it was cut out of
  v.field AS path,                                      -- where it was, as in args.items.2.card
  v.json AS value
FROM vals AS v JOIN facts AS f ON f.id = v.fact_id
WHERE instr(v.field, '.') > 0
"""

VIEWS: tuple[str, ...] = (
    _DECISIONS,
    _RUNS,
    _TOOL_CALLS,
    _MODEL_CALLS,
    _PAUSES,
    _WINDOW_RECORDS,
    _DISCLOSURES,
)
"""The views, each as its `CREATE VIEW` statement."""
