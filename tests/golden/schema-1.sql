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
;
CREATE TABLE vals (
  fact_id INTEGER NOT NULL REFERENCES facts (id),
  field TEXT NOT NULL,
  json TEXT NOT NULL,  -- the value; the commitment is over exactly these bytes
  salt BLOB NOT NULL,
  PRIMARY KEY (fact_id, field)
) STRICT, WITHOUT ROWID
;
CREATE TABLE pause_bodies (
  pause_id TEXT PRIMARY KEY, -- a question that is open; its row goes when it is answered
  run_id TEXT NOT NULL,
  key_id TEXT NOT NULL,      -- which key of the ring it is sealed with
  nonce BLOB NOT NULL,
  body BLOB NOT NULL         -- AES-256-GCM over the checkpoint without its rows
) STRICT, WITHOUT ROWID
;
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
;
CREATE INDEX facts_runs ON facts (id, recorded_us) WHERE kind = 'run.configured';
CREATE INDEX facts_conversations ON facts (conversation_id) WHERE conversation_id IS NOT NULL;
CREATE INDEX facts_pauses ON facts (kind, pause_id) WHERE pause_id IS NOT NULL;
CREATE INDEX facts_abandoned ON facts (run_id, position) WHERE kind = 'run.abandoned';
CREATE INDEX facts_denials ON facts (id) WHERE kind = 'decision' AND outcome = 'deny';
CREATE INDEX vals_disclosures ON vals (field) WHERE instr(field, '.') > 0;
CREATE INDEX vals_people ON vals (json) WHERE field = 'decided_by';
CREATE INDEX pause_bodies_runs ON pause_bodies (run_id);
CREATE TRIGGER decision_totals_no_update BEFORE UPDATE ON decision_totals BEGIN SELECT RAISE(ABORT, 'footprint: decision_totals is append-only; rows are never rewritten or deleted'); END;
CREATE TRIGGER decision_totals_no_delete BEFORE DELETE ON decision_totals BEGIN SELECT RAISE(ABORT, 'footprint: decision_totals is append-only; rows are never rewritten or deleted'); END;
CREATE TRIGGER decision_totals_no_replace BEFORE INSERT ON decision_totals WHEN EXISTS (SELECT 1 FROM decision_totals WHERE span = NEW.span AND last_id = NEW.last_id AND day = NEW.day AND middleware = NEW.middleware AND version = NEW.version AND moment = NEW.moment AND tool_name = NEW.tool_name AND outcome = NEW.outcome AND shadow = NEW.shadow) BEGIN SELECT RAISE(ABORT, 'footprint: decision_totals is append-only; rows are never rewritten or deleted'); END;
CREATE TRIGGER facts_no_update BEFORE UPDATE ON facts BEGIN SELECT RAISE(ABORT, 'footprint: facts is append-only; rows are never rewritten or deleted'); END;
CREATE TRIGGER facts_no_delete BEFORE DELETE ON facts BEGIN SELECT RAISE(ABORT, 'footprint: facts is append-only; rows are never rewritten or deleted'); END;
CREATE TRIGGER facts_no_replace BEFORE INSERT ON facts WHEN EXISTS (SELECT 1 FROM facts WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM facts WHERE run_id = NEW.run_id AND position = NEW.position) BEGIN SELECT RAISE(ABORT, 'footprint: facts is append-only; rows are never rewritten or deleted'); END;
CREATE TRIGGER pause_bodies_no_update BEFORE UPDATE ON pause_bodies BEGIN SELECT RAISE(ABORT, 'footprint: pause_bodies is append-only; rows are never rewritten or deleted'); END;
CREATE TRIGGER pause_bodies_no_delete BEFORE DELETE ON pause_bodies WHEN NOT EXISTS (SELECT 1 FROM facts AS a WHERE a.kind IN ('pause.answered', 'pause.closed') AND a.pause_id = OLD.pause_id AND +a.run_id = OLD.run_id) AND NOT EXISTS (SELECT 1 FROM facts AS o JOIN facts AS e ON e.run_id = o.run_id AND e.position > o.position AND e.kind = 'run.abandoned' WHERE o.kind = 'pause.opened' AND o.pause_id = OLD.pause_id AND o.run_id = OLD.run_id) BEGIN SELECT RAISE(ABORT, 'footprint: pause_bodies is append-only; a body goes with its answer'); END;
CREATE TRIGGER pause_bodies_no_replace BEFORE INSERT ON pause_bodies WHEN EXISTS (SELECT 1 FROM pause_bodies WHERE pause_id = NEW.pause_id) BEGIN SELECT RAISE(ABORT, 'footprint: pause_bodies is append-only; rows are never rewritten or deleted'); END;
CREATE TRIGGER vals_no_update BEFORE UPDATE ON vals BEGIN SELECT RAISE(ABORT, 'footprint: vals is append-only; rows are never rewritten or deleted'); END;
CREATE TRIGGER vals_no_delete BEFORE DELETE ON vals BEGIN SELECT RAISE(ABORT, 'footprint: vals is append-only; rows are never rewritten or deleted'); END;
CREATE TRIGGER vals_no_replace BEFORE INSERT ON vals WHEN EXISTS (SELECT 1 FROM vals WHERE fact_id = NEW.fact_id AND field = NEW.field) BEGIN SELECT RAISE(ABORT, 'footprint: vals is append-only; rows are never rewritten or deleted'); END;
CREATE TRIGGER facts_no_gap BEFORE INSERT ON facts WHEN NEW.id <> -1 AND NEW.id <> (SELECT ifnull(max(id), 0) + 1 FROM facts) BEGIN SELECT RAISE(ABORT, 'footprint: facts is append-only; a new row follows the last'); END;
CREATE TRIGGER vals_no_stray BEFORE INSERT ON vals WHEN NOT EXISTS (SELECT 1 FROM facts AS f, json_each(f.commitments) AS c WHERE f.id = NEW.fact_id AND c.key = NEW.field) BEGIN SELECT RAISE(ABORT, 'footprint: vals is append-only; a value is named by its row'); END;
CREATE TRIGGER pause_bodies_no_stray BEFORE INSERT ON pause_bodies WHEN NOT (EXISTS (SELECT 1 FROM facts AS o WHERE o.kind = 'pause.opened' AND o.pause_id = NEW.pause_id AND o.run_id = NEW.run_id) AND NOT EXISTS (SELECT 1 FROM facts AS a WHERE a.kind IN ('pause.answered', 'pause.closed') AND a.pause_id = NEW.pause_id AND +a.run_id = NEW.run_id) AND NOT EXISTS (SELECT 1 FROM facts AS o JOIN facts AS e ON e.run_id = o.run_id AND e.position > o.position AND e.kind = 'run.abandoned' WHERE o.kind = 'pause.opened' AND o.pause_id = NEW.pause_id AND o.run_id = NEW.run_id)) BEGIN SELECT RAISE(ABORT, 'footprint: pause_bodies is append-only; a body belongs to an open pause'); END;
CREATE TRIGGER decision_totals_no_stray BEFORE INSERT ON decision_totals WHEN NEW.span NOT IN (4096, 262144) OR NEW.last_id % NEW.span <> 0 OR NEW.last_id IS NOT (SELECT max(id) FROM facts) BEGIN SELECT RAISE(ABORT, 'footprint: decision_totals is append-only; sums are made with the rows'); END;
CREATE TRIGGER facts_totals AFTER INSERT ON facts WHEN NEW.id % 4096 = 0 BEGIN
INSERT INTO decision_totals (span, last_id, day, middleware, version, moment, tool_name, outcome, shadow, n)
SELECT 4096, NEW.id, * FROM (
SELECT
  strftime('%Y-%m-%d', day * 86400, 'unixepoch') AS day, middleware, ifnull(version, '') AS version, moment,
  ifnull(tool_name, '') AS tool_name, outcome, shadow, n
FROM (
  SELECT (recorded_us + 9504000000000000) / 86400000000 - 110000 AS day, middleware, version, moment, tool_name, outcome, shadow, count(*) AS n
  FROM facts WHERE kind = 'decision' AND id > NEW.id - 4096 AND id <= NEW.id GROUP BY json_array((recorded_us + 9504000000000000) / 86400000000 - 110000, middleware, version, moment, tool_name, outcome, shadow)
)
);
INSERT INTO decision_totals (span, last_id, day, middleware, version, moment, tool_name, outcome, shadow, n)
SELECT 262144, NEW.id, * FROM (
SELECT day, middleware, version, moment, tool_name, outcome, shadow, sum(n) AS n FROM decision_totals WHERE NEW.id % 262144 = 0 AND span = 4096 AND last_id > NEW.id - 262144 AND last_id <= NEW.id GROUP BY json_array(day, middleware, version, moment, tool_name, outcome, shadow)
);
END;
CREATE VIEW decisions AS
-- What one rule, or one person, decided once. Where {"...": digest} stands in a value, what was there can
-- be erased alone, and is in the view disclosures.
SELECT
  f.id, f.run_id, f.segment, f.position,
  strftime('%Y-%m-%dT%H:%M:%S', f.recorded_us / 1000000, 'unixepoch') || printf('.%06d+00:00', f.recorded_us % 1000000) AS recorded_at,
  f.moment, f.at, f.phase, f.middleware, f.version,
  f.outcome,           -- allow, deny or ask
  f.changed,           -- 1: what went on differs from what came
  f.answer,            -- given, raised, timed-out, malformed or person
  (SELECT CASE WHEN instr(v.json, '\u0000') AND instr(replace(v.json, '\\', ''), '\u0000') THEN v.json ELSE json_extract(v.json, '$') END FROM vals AS v WHERE v.fact_id = f.id AND v.field = 'why') AS why,
  (SELECT v.json FROM vals AS v WHERE v.fact_id = f.id AND v.field = 'before') AS before,
  (SELECT v.json FROM vals AS v WHERE v.fact_id = f.id AND v.field = 'after') AS after,
  (SELECT v.json FROM vals AS v WHERE v.fact_id = f.id AND v.field = 'detail') AS detail,
  (SELECT CASE WHEN instr(v.json, '\u0000') AND instr(replace(v.json, '\\', ''), '\u0000') THEN v.json ELSE json_extract(v.json, '$') END FROM vals AS v WHERE v.fact_id = f.id AND v.field = 'decided_by') AS decided_by,
  f.tool_name, f.tool_source, f.tool_call_id, f.iteration,
  f.duration_us, f.error_class,
  f.shadow,            -- 1: only recorded
  f.after_approval,    -- 1: changed args that a person had approved
  json_extract(f.extra, '$.imported') IS NOT NULL AS imported, -- 1: another ledger filed it
  f.redacted, f.trace_id, f.span_id
FROM facts AS f
WHERE f.kind = 'decision';
CREATE VIEW runs AS
-- One row a run. `id` is its first row, so ordering by id is ordering by start.
SELECT
  f.id, f.run_id, f.conversation_id,
  json_extract(f.extra, '$.agent_name') AS agent,
  json_extract(f.extra, '$.model') AS model,
  strftime('%Y-%m-%dT%H:%M:%S', f.recorded_us / 1000000, 'unixepoch') || printf('.%06d+00:00', f.recorded_us % 1000000) AS started_at,
  CASE WHEN end.segment = (SELECT l.segment FROM facts AS l WHERE l.run_id = f.run_id ORDER BY l.position DESC LIMIT 1) THEN strftime('%Y-%m-%dT%H:%M:%S', end.recorded_us / 1000000, 'unixepoch') || printf('.%06d+00:00', end.recorded_us % 1000000) END AS ended_at,
  (SELECT l.segment FROM facts AS l WHERE l.run_id = f.run_id ORDER BY l.position DESC LIMIT 1) AS segments,
  -- how the last segment ended; 'open' while it has not
  CASE WHEN end.segment = (SELECT l.segment FROM facts AS l WHERE l.run_id = f.run_id ORDER BY l.position DESC LIMIT 1) THEN end.outcome ELSE 'open' END AS outcome,
  json_extract(end.extra, '$.iterations') AS iterations,
  json_extract(end.extra, '$.input_tokens') AS input_tokens,
  json_extract(end.extra, '$.output_tokens') AS output_tokens,
  (SELECT count(*) FROM facts AS d WHERE d.run_id = f.run_id AND d.kind = 'decision') AS decisions,
  -- a shadow decision refused nothing and asked nobody
  (SELECT count(*) FROM facts AS d WHERE d.run_id = f.run_id AND d.kind = 'decision' AND +d.outcome = 'deny' AND d.shadow = 0) AS denials,
  (SELECT count(*) FROM facts AS d WHERE d.run_id = f.run_id AND d.kind = 'decision' AND +d.outcome = 'ask' AND d.shadow = 0) AS asks,
  json_extract(f.extra, '$.follows') AS follows,
  (SELECT CASE WHEN instr(v.json, '\u0000') AND instr(replace(v.json, '\\', ''), '\u0000') THEN v.json ELSE json_extract(v.json, '$') END FROM vals AS v WHERE v.field = 'text' AND v.fact_id = (
    SELECT m.id FROM facts AS m WHERE m.run_id = f.run_id AND m.kind = 'message.taken'
    ORDER BY m.position LIMIT 1
  )) AS question,
  (SELECT CASE WHEN instr(v.json, '\u0000') AND instr(replace(v.json, '\\', ''), '\u0000') THEN v.json ELSE json_extract(v.json, '$') END FROM vals AS v WHERE v.fact_id = end.id AND v.field = 'text') AS text
FROM facts AS f
LEFT JOIN facts AS end ON end.id = (
  SELECT e.id FROM facts AS e WHERE e.run_id = f.run_id AND e.kind = 'segment.ended'
  ORDER BY e.position DESC LIMIT 1
)
WHERE f.kind = 'run.configured' AND NOT EXISTS (
  SELECT 1 FROM facts AS b
  WHERE b.run_id = f.run_id AND b.kind = 'run.configured' AND b.position < f.position
);
CREATE VIEW tool_calls AS
-- One row for every call the model asked for, whether it ran or not.
SELECT
  c.id, c.run_id, c.segment, c.position,
  strftime('%Y-%m-%dT%H:%M:%S', c.recorded_us / 1000000, 'unixepoch') || printf('.%06d+00:00', c.recorded_us % 1000000) AS recorded_at,
  c.iteration, c.tool_call_id, c.tool_name, c.tool_source,
  (SELECT v.json FROM vals AS v WHERE v.fact_id = t.id AND v.field = 'args') AS args,        -- the args that ran, or were about to
  (SELECT v.json FROM vals AS v WHERE v.fact_id = r.id AND v.field = 'result') AS result,    -- the tool's own result, as it came
  -- ran, failed, denied, invalid, unknown, blocked or cancelled; NULL while a person is asked
  CASE
    WHEN a.status IS NOT NULL THEN a.status
    WHEN r.id IS NULL THEN NULL
    WHEN ifnull(json_extract(r.extra, '$.cancelled'), 0) THEN 'cancelled'
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
    WHEN a.id IS NULL THEN h.id IS NULL AND (r.id IS NULL OR ifnull(json_extract(r.extra, '$.cancelled'), 0))
    ELSE r.id IS NULL AND a.status = 'blocked'
  END AS in_doubt,
  c.trace_id, c.span_id
FROM facts AS c
LEFT JOIN facts AS t ON t.id = (
  SELECT x.id FROM facts AS x
  WHERE x.run_id = c.run_id AND x.position > c.position
    AND x.position < ifnull((
      SELECT i.position FROM facts AS i
      WHERE i.run_id = c.run_id AND i.position > c.position AND i.kind = 'iteration.ended'
      ORDER BY i.position LIMIT 1
    ), 9223372036854775807)
    AND x.kind = 'tool.intended' AND x.iteration = c.iteration AND x.tool_call_id = c.tool_call_id
  ORDER BY x.position  LIMIT 1
)
LEFT JOIN facts AS r ON r.id = (
  SELECT x.id FROM facts AS x
  WHERE x.run_id = c.run_id AND x.position > c.position
    AND x.position < ifnull((
      SELECT i.position FROM facts AS i
      WHERE i.run_id = c.run_id AND i.position > c.position AND i.kind = 'iteration.ended'
      ORDER BY i.position LIMIT 1
    ), 9223372036854775807)
    AND x.kind = 'tool.finished' AND x.iteration = c.iteration AND x.tool_call_id = c.tool_call_id
  ORDER BY x.position DESC LIMIT 1
)
LEFT JOIN facts AS a ON a.id = (
  SELECT x.id FROM facts AS x
  WHERE x.run_id = c.run_id AND x.position > c.position
    AND x.position < ifnull((
      SELECT i.position FROM facts AS i
      WHERE i.run_id = c.run_id AND i.position > c.position AND i.kind = 'iteration.ended'
      ORDER BY i.position LIMIT 1
    ), 9223372036854775807)
    AND x.kind = 'call.answered' AND x.iteration = c.iteration AND x.tool_call_id = c.tool_call_id
  ORDER BY x.position DESC LIMIT 1
)
LEFT JOIN facts AS h ON h.id = (
  SELECT x.id FROM facts AS x
  WHERE x.run_id = c.run_id AND x.position > c.position
    AND x.position < ifnull((
      SELECT i.position FROM facts AS i
      WHERE i.run_id = c.run_id AND i.position > c.position AND i.kind = 'iteration.ended'
      ORDER BY i.position LIMIT 1
    ), 9223372036854775807)
    AND x.kind = 'tool.paused' AND x.iteration = c.iteration AND x.tool_call_id = c.tool_call_id
  ORDER BY x.position  LIMIT 1
)
WHERE c.kind = 'call.taken';
CREATE VIEW model_calls AS
-- One row for every request to the model. What came next for it is its reply, its failure, or after a
-- crash the same request again, which has none of the columns below.
SELECT
  q.id, q.run_id, q.segment, q.position,
  strftime('%Y-%m-%dT%H:%M:%S', q.recorded_us / 1000000, 'unixepoch') || printf('.%06d+00:00', q.recorded_us % 1000000) AS recorded_at,
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
  (SELECT CASE WHEN instr(v.json, '\u0000') AND instr(replace(v.json, '\\', ''), '\u0000') THEN v.json ELSE json_extract(v.json, '$') END FROM vals AS v WHERE v.fact_id = r.id AND v.field = 'text') AS text,
  r.duration_us, r.error_class,
  q.trace_id, q.span_id
FROM facts AS q
LEFT JOIN facts AS r ON r.id = (
  SELECT n.id FROM facts AS n
  WHERE n.run_id = q.run_id AND n.position > q.position
    AND n.kind IN ('model.asked', 'model.replied', 'model.failed')
  ORDER BY n.position LIMIT 1
)
WHERE q.kind = 'model.asked';
CREATE VIEW pauses AS
-- One row for every question to a person.
SELECT
  p.id, p.run_id, p.segment, p.position,
  strftime('%Y-%m-%dT%H:%M:%S', p.recorded_us / 1000000, 'unixepoch') || printf('.%06d+00:00', p.recorded_us % 1000000) AS opened_at,
  p.pause_id,
  json_extract(p.extra, '$.pause_kind') AS kind,  -- ask, check-in or human
  p.iteration, p.tool_name, p.tool_source, p.tool_call_id, p.middleware,
  strftime('%Y-%m-%dT%H:%M:%S', json_extract(p.extra, '$.expires_us') / 1000000, 'unixepoch') || printf('.%06d+00:00', json_extract(p.extra, '$.expires_us') % 1000000) AS expires_at,
  a.answer,                            -- approved, declined or value; NULL while nobody answered
  strftime('%Y-%m-%dT%H:%M:%S', a.recorded_us / 1000000, 'unixepoch') || printf('.%06d+00:00', a.recorded_us % 1000000) AS answered_at,
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
WHERE p.kind = 'pause.opened' AND p.pause_id IS NOT NULL;
CREATE VIEW window_records AS
-- One row for every visit at which a window strategy engaged.
SELECT
  f.id, f.run_id, f.segment, f.position,
  strftime('%Y-%m-%dT%H:%M:%S', f.recorded_us / 1000000, 'unixepoch') || printf('.%06d+00:00', f.recorded_us % 1000000) AS recorded_at,
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
  (SELECT CASE WHEN instr(v.json, '\u0000') AND instr(replace(v.json, '\\', ''), '\u0000') THEN v.json ELSE json_extract(v.json, '$') END FROM vals AS v WHERE v.fact_id = f.id AND v.field = 'notice') AS notice,
  (SELECT CASE WHEN instr(v.json, '\u0000') AND instr(replace(v.json, '\\', ''), '\u0000') THEN v.json ELSE json_extract(v.json, '$') END FROM vals AS v WHERE v.fact_id = f.id AND v.field = 'summary') AS summary,
  f.trace_id, f.span_id
FROM facts AS f
WHERE f.kind = 'window.visited';
CREATE VIEW disclosures AS
-- One row for every value that was cut out of another one, so that it can be erased alone, and is there.
SELECT
  v.fact_id, f.run_id, f.kind,
  substr(v.field, 1, instr(v.field, '.') - 1) AS field, -- the value it was cut out of
  v.field AS path,                                      -- where it was, as in args.items.2.card
  v.json AS value
FROM vals AS v JOIN facts AS f ON f.id = v.fact_id
WHERE instr(v.field, '.') > 0;
CREATE VIEW decisions_by_day AS
-- How many decisions there were by day (UTC), rule, version, moment, tool and outcome. They are to be added
-- up, for a group has a row for every block: select day, sum(n) from decisions_by_day group by day
SELECT
  day, middleware, nullif(version, '') AS version, moment, nullif(tool_name, '') AS tool_name, outcome,
  shadow, -- 1: only recorded; they refused nothing and asked nobody
  n
FROM (
SELECT day, middleware, version, moment, tool_name, outcome, shadow, n FROM decision_totals WHERE span = 262144
UNION ALL
SELECT day, middleware, version, moment, tool_name, outcome, shadow, n FROM decision_totals WHERE span = 4096 AND last_id > (SELECT max(id) FROM facts) / 262144 * 262144
UNION ALL
SELECT
  strftime('%Y-%m-%d', day * 86400, 'unixepoch') AS day, middleware, ifnull(version, '') AS version, moment,
  ifnull(tool_name, '') AS tool_name, outcome, shadow, n
FROM (
  SELECT (recorded_us + 9504000000000000) / 86400000000 - 110000 AS day, middleware, version, moment, tool_name, outcome, shadow, count(*) AS n
  FROM facts WHERE kind = 'decision' AND id > (SELECT max(id) FROM facts) / 4096 * 4096 GROUP BY json_array((recorded_us + 9504000000000000) / 86400000000 - 110000, middleware, version, moment, tool_name, outcome, shadow)
)
);
