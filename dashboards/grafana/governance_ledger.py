"""The panels of "Governance" that ask the ledger: they show what events and metrics never carry."""

from __future__ import annotations

from dashboards.grafana.panels import ANSWERS, About, Panel
from dashboards.grafana.queries import LEDGER, Sql
from dashboards.grafana.tables import RUN, TIME, TRACE, Column, rows

_DENIALS = """
select seconds[d.recorded_at] as time, r.agent, d.moment, d.middleware as rule, d.version,
  d.tool_name as tool, d.why, d.answer as came_about, d.decided_by as person, d.run_id, d.trace_id
from decisions as d join runs as r on r.run_id = d.run_id
where d.outcome = 'deny' and d.shadow = 0 and within[d.recorded_at]
  and chosen[r.agent, agent] and chosen[d.middleware, rule]
order by d.id desc limit 200
"""

_OPEN = """
select strftime('%s', 'now') - strftime('%s', p.opened_at) as waits, r.agent,
  ifnull(p.middleware, p.kind) as asked_by, p.tool_name as tool,
  case when p.expires_at < strftime('%Y-%m-%dT%H:%M:%f', 'now') then 'expired' else 'open' end as state,
  p.run_id, p.trace_id
from pauses as p join runs as r on r.run_id = p.run_id
where p.open and chosen[r.agent, agent]
order by p.id limit 200
"""

# Who answered a tool is on record nowhere; who answered a rule or gave consent, with what they decided.
_ANSWERS = """
select seconds[p.answered_at] as time, (
    select json_extract(v.json, '$') from facts as f join vals as v on v.fact_id = f.id
    where f.run_id = p.run_id and f.position > p.position and v.field = 'decided_by'
      and f.tool_call_id = p.tool_call_id and f.kind in ('decision', 'check-in.answered')
    order by f.position limit 1
  ) as person,
  p.answer, r.agent, ifnull(p.middleware, p.kind) as asked_by, p.tool_name as tool,
  p.paused_us / 1000000.0 as waited, p.run_id, p.trace_id
from pauses as p join runs as r on r.run_id = p.run_id
where recent[p.run_id] and p.answer is not null and within[p.answered_at] and chosen[r.agent, agent]
order by p.id desc limit 200
"""

_REDACTIONS = """
select json_extract(j.value, '$[0]') as place, json_extract(j.value, '$[1]') as strategy, count(*) as n
from decisions as d, json_each(d.redacted) as j
where recent[d.run_id] and d.redacted is not null and within[d.recorded_at]
group by 1, 2 order by n desc, 1, 2 limit 100
"""

_ASKED_BY = Column(name="asked_by", title="asked by")


def denials() -> Panel:
    """The newest refusals."""
    text = (
        "The newest rows that refused something: which rule, what it was about, the reason that was read; "
        "a click on the run shows all of it, a click on the trace its spans. Read from the ledger."
    )
    return rows(
        About(title="Latest denials", text=text, unit="short", source=LEDGER, width=24, height=12),
        Sql(sql=_DENIALS),
        columns=[
            TIME,
            RUN,
            TRACE,
            Column(name="came_about", title="came about"),
            Column(name="why", width=420),
        ],
    )


def open_questions() -> Panel:
    """Who waits."""
    text = (
        "Every question that no person has answered, the oldest first, whenever it was asked. One past its "
        "time takes no answer any more. `footprint pending --show` opens what is kept of a question."
    )
    return rows(
        About(title="Questions that wait", text=text, unit="short", source=LEDGER, width=12, height=10),
        Sql(sql=_OPEN),
        columns=[Column(name="waits", title="Waits", unit="s", width=110), _ASKED_BY, RUN, TRACE],
    )


def answers() -> Panel:
    """What people answered."""
    text = (
        "What people answered, the newest first: who, what they were asked about, and how long it took them. "
        "Whoever answers a tool that asked is not on record by name."
    )
    return rows(
        About(title="Answers of people", text=text, unit="short", source=LEDGER, width=12, height=10),
        Sql(sql=_ANSWERS),
        columns=[
            TIME,
            RUN,
            TRACE,
            _ASKED_BY,
            Column(name="answer", width=100, colours=ANSWERS),
            Column(name="waited", unit="s", width=100),
        ],
    )


def redactions() -> Panel:
    """What was taken out, by place."""
    text = "Which parts of decisions were not written as they were, and what was done instead."
    return rows(
        About(title="Redactions by place", text=text, unit="short", source=LEDGER, width=12),
        Sql(sql=_REDACTIONS),
        columns=[Column(name="n", title="values", width=100)],
    )
