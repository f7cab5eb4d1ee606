"""The panels of "Runs" that ask the ledger: what has no end is in no metric."""

from __future__ import annotations

from dashboards.grafana.names import OF_AGENT, counter, total
from dashboards.grafana.panels import VERDICTS, About, Panel, number
from dashboards.grafana.queries import LEDGER, Sql, now
from dashboards.grafana.tables import OUTCOME, RUN, STATUS, TIME, TRACE, Column, rows
from footprint_observe import semconv

# As `footprint doctor` has it: behind the end of a segment nothing more was filed, unless the process that
# went on with a run closed a segment as abandoned, and no person gave the run up.
_ENDLESS = """
runs as r join facts as l on l.id = (
  select n.id from facts as n where n.run_id = r.run_id order by n.position desc limit 1
)
where within[r.started_at] and chosen[r.agent, agent] and (
  l.kind not in ('segment.ended', 'run.abandoned') or l.outcome = 'abandoned' and not exists (
    select 1 from facts as a where a.kind = 'run.abandoned' and a.run_id = r.run_id
  )
)
"""

_SILENT = f"""
select count(*) as runs from {_ENDLESS.strip()}
and l.recorded_us < (strftime('%s', 'now') - 300) * 1000000
"""  # noqa: S608 - constants

_WITHOUT_END = f"""
select seconds[r.started_at] as time, r.agent,
  strftime('%s', 'now') - l.recorded_us / 1000000 as silent, l.kind as last_row,
  r.run_id, trace[r] as trace_id
from {_ENDLESS.strip()}
order by r.id desc limit 200
"""  # noqa: S608 - constants

_IN_DOUBT = """
select seconds[c.recorded_at] as time, r.agent, c.tool_name as tool, c.tool_source as server,
  c.status, c.run_id, c.trace_id
from tool_calls as c join runs as r on r.run_id = c.run_id
where recent[c.run_id] and c.in_doubt and within[c.recorded_at] and chosen[r.agent, agent]
order by c.id desc limit 200
"""

_SLOWEST = """
select seconds[r.started_at] as time, r.agent, r.model, r.outcome,
  ifnull((
    select sum(s.duration_us) from facts as s where s.run_id = r.run_id and s.kind = 'segment.ended'
  ), 0) / 1000000.0 as worked,
  r.segments, r.iterations, r.decisions, r.denials, r.asks, r.input_tokens, r.output_tokens,
  r.run_id, trace[r] as trace_id
from runs as r
where within[r.started_at] and chosen[r.agent, agent]
order by worked desc, r.id limit 50
"""

# The questions that wait are found first: for each call, SQLite would look through all there ever were.
_TOOLS = """
with waiting as materialized (
  select p.run_id, p.iteration, p.tool_call_id from pauses as p
  where p.open and p.tool_call_id is not null
    and ifnull(p.expires_at >= strftime('%Y-%m-%dT%H:%M:%f', 'now'), 1)
)
select c.tool_name as tool, c.tool_source as server, count(*) as calls,
  sum(c.status is 'ran') as ran, sum(c.status is 'failed') as failed, sum(c.status is 'denied') as denied,
  sum(c.status is 'invalid') as invalid, sum(c.status is 'unknown') as unknown,
  sum(c.status is 'blocked') as blocked, sum(c.status is 'cancelled') as cancelled,
  sum((c.run_id, c.iteration, c.tool_call_id) in (select * from waiting)) as waiting,
  sum(c.in_doubt) as in_doubt,
  avg(c.duration_us) / 1000000.0 as mean, max(c.duration_us) / 1000000.0 as longest
from tool_calls as c join runs as r on r.run_id = c.run_id
where recent[c.run_id] and within[c.recorded_at]
  and chosen[r.agent, agent] and chosen[c.tool_name, tool]
group by 1, 2 order by calls desc, 1 limit 200
"""

_ROWS = """
select count(*) as rows, count(d.trace_id) as with_a_trace
from decisions as d join runs as r on r.run_id = d.run_id
where recent[d.run_id] and d.shadow = 0 and within[d.recorded_at] and chosen[r.agent, agent]
"""

_DECISIONS = """
select seconds[d.recorded_at] as time, d.position as row, d.moment, d.middleware as rule, d.outcome,
  d.changed, d.shadow, d.tool_name as tool, d.why, d.decided_by as person,
  d.duration_us / 1000000.0 as took, d.trace_id
from decisions as d where d.run_id = ${run:sqlstring} order by d.id limit 500
"""

_CALLS = """
select seconds[c.recorded_at] as time, c.position as row, c.tool_name as tool, c.tool_source as server,
  c.status, c.decided_by_rule as rule, c.error_class as error, c.in_doubt,
  c.duration_us / 1000000.0 as took, c.trace_id
from tool_calls as c where c.run_id = ${run:sqlstring} order by c.id limit 500
"""

_IN_DOUBT_COLUMN = Column(name="in_doubt", title="in doubt")
_ROW = Column(name="row", width=60)
_TOOK = Column(name="took", unit="s", width=90)


def open_runs() -> Panel:
    """How many runs have no end."""
    text = "Runs that began in this time, have no end, and were not heard of for five minutes."
    return number(
        About(title="Without an end", text=text, unit="short", source=LEDGER, width=3, height=4),
        Sql(sql=_SILENT),
        steps=[(1, "red")],
        decimals=0,
    )


def without_end() -> Panel:
    """Runs whose process may be dead."""
    text = (
        "Runs that began in this time and have no end: a process goes on with them, or died. The longer one "
        "was not heard of, the surer; `agent.recover(run_id)` goes on with it, `footprint abandon` gives it "
        "up. `footprint doctor` lists those of all times."
    )
    return rows(
        About(title="Runs without an end", text=text, unit="short", source=LEDGER, width=12, height=10),
        Sql(sql=_WITHOUT_END),
        columns=[
            TIME,
            Column(name="silent", title="Silent for", unit="s", width=110),
            Column(name="last_row", title="last row"),
            RUN,
            TRACE,
        ],
    )


def in_doubt() -> Panel:
    """Calls nobody heard of again."""
    text = "Calls that may have run: they were about to, and nobody heard of them again. Look at these first."
    return rows(
        About(title="Calls in doubt", text=text, unit="short", source=LEDGER, width=12, height=10),
        Sql(sql=_IN_DOUBT),
        columns=[TIME, RUN, TRACE, STATUS],
    )


def slowest() -> Panel:
    """The slowest runs."""
    text = "The runs that worked longest, all their segments together; the time people took is left out."
    return rows(
        About(title="Slowest runs", text=text, unit="short", source=LEDGER, width=24, height=10),
        Sql(sql=_SLOWEST),
        columns=[TIME, RUN, TRACE, OUTCOME, Column(name="worked", unit="s", width=110)],
    )


def tools() -> Panel:
    """Every tool."""
    text = (
        "What became of the calls of every tool, how many wait for a person who can still answer, and how "
        "long those took that ran. Read from the ledger."
    )
    return rows(
        About(title="Tools", text=text, unit="short", source=LEDGER, width=24, height=9),
        Sql(sql=_TOOLS),
        columns=[Column(name="mean", unit="s"), Column(name="longest", unit="s"), _IN_DOUBT_COLUMN],
    )


def agreement() -> Panel:
    """Whether ledger and metrics tell of the same."""
    text = (
        "Two accounts of the same time. Rows: what the ledger holds; with a trace: those that name one. "
        "Counted: what Prometheus adds up, estimated at the edges. A large difference means that some "
        "process is not watched, or lived shorter than from one scrape to the next."
    )
    return number(
        About(title="Decisions, by who tells", text=text, unit="short", source=None, width=24, height=5),
        Sql(sql=_ROWS),
        now(total(counter(semconv.DECISIONS), OF_AGENT), "counted", "B"),
        decimals=0,
    )


def decisions() -> Panel:
    """The decisions of the run that was chosen."""
    text = "Every decision of the run whose id is in the field Run at the top, in order, with its reason."
    return rows(
        About(title="Decisions of the run", text=text, unit="short", source=LEDGER, width=24, height=10),
        Sql(sql=_DECISIONS),
        columns=[
            TIME,
            TRACE,
            Column(name="outcome", width=100, colours=VERDICTS),
            _ROW,
            _TOOK,
            Column(name="why", width=420),
        ],
    )


def calls() -> Panel:
    """The calls of the run that was chosen."""
    text = "Every call the model asked for in that run, with what became of it."
    return rows(
        About(title="Calls of the run", text=text, unit="short", source=LEDGER, width=24, height=9),
        Sql(sql=_CALLS),
        columns=[TIME, TRACE, STATUS, _ROW, _TOOK, _IN_DOUBT_COLUMN],
    )
