"""The dashboard "Governance": what is decided, what is refused, who is asked, and what is taken out."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from dashboards.grafana import governance_ledger as ledger
from dashboards.grafana import variables
from dashboards.grafana.names import (
    AGENT,
    ANSWER,
    MIDDLEWARE,
    MOMENT,
    OF_RULE,
    OUTCOME,
    RANGE,
    STRATEGY,
    WATCHER,
    counter,
    gauge,
    histogram,
    per_minute,
    quantile,
    share,
    total,
)
from dashboards.grafana.panels import ANSWERS, VERDICTS, About, Panel, lines, link, number, ranking
from dashboards.grafana.queries import (
    JAEGER,
    PROMETHEUS,
    TEMPO,
    TRACEQL_AGENT,
    JaegerSearch,
    cells,
    now,
    over_time,
    traceql,
)
from dashboards.grafana.tables import Column, rows
from footprint_observe import semconv

DECISIONS = counter(semconv.DECISIONS)
ERRORS = counter(semconv.MIDDLEWARE_ERRORS)
LATENCY = histogram(semconv.APPROVAL_LATENCY, "count")
DENY, ASK = f'{OUTCOME}="deny"', f'{OUTCOME}="ask"'


def governance(dashboard: Dashboard) -> Dashboard:
    """Fill the dashboard."""
    for variable in (*variables.sources(), variables.agent(), variables.rule(), variables.service()):
        dashboard.with_variable(variable)
    dashboard.link(link("Runs", "footprint-runs"))
    for panel in _numbers():
        dashboard.with_panel(panel)
    for title, panels in (
        ("Decisions", _decisions()),
        ("People", [*_people(), ledger.open_questions(), ledger.answers()]),
        ("What was refused, and why", [ledger.denials()]),
        ("What was taken out", [_redactions(), ledger.redactions()]),
        ("What was lost", _losses()),
    ):
        dashboard.with_row(Row(title))
        for panel in panels:
            dashboard.with_panel(panel)
    # A viewer of traces that nobody has would be asked, and fail, whenever the dashboard is opened.
    for title, panel in (("Refusals in Jaeger", _jaeger()), ("Refusals in Tempo", _tempo())):
        dashboard.with_row(Row(title).collapsed(collapsed=True).with_panel(panel))
    return dashboard


def _number(title: str, text: str, unit: str = "short") -> About:
    return About(title=title, text=text, unit=unit, source=PROMETHEUS, width=3, height=4)


def _numbers() -> list[Panel]:
    dropped = counter(semconv.RECORDER_DROPPED)
    return [
        number(
            _number("Decisions", "What rules and people decided: one for each row, shadow rows left out."),
            now(total(DECISIONS, OF_RULE)),
            decimals=0,
        ),
        number(
            _number("Denials", "Decisions that refused something: a message, a call, a result, an answer."),
            now(total(DECISIONS, f"{OF_RULE}, {DENY}")),
            decimals=0,
        ),
        number(
            _number("Denial rate", "The share of decisions that refused something.", "percentunit"),
            now(share(DECISIONS, DENY, OF_RULE, window=RANGE)),
            steps=[(0.1, "orange"), (0.25, "red")],
        ),
        number(
            _number("Questions", "How often a rule asked a person."),
            now(total(DECISIONS, f"{OF_RULE}, {ASK}")),
            decimals=0,
        ),
        number(
            _number("Open questions", "Questions that wait for a person now, of all agents of the ledger."),
            now(f"max({gauge(semconv.APPROVALS_PENDING)})"),
            steps=[(10, "orange"), (50, "red")],
        ),
        number(
            _number("Oldest question", "How long the oldest open question has waited; 0 if none does.", "s"),
            now(f"max({gauge(semconv.APPROVALS_OLDEST)})"),
            steps=[(3600, "orange"), (86_400, "red")],
        ),
        number(
            _number(
                "Broken rules", "Answers of rules that raised, were late or malformed; each is a denial."
            ),
            now(total(ERRORS, OF_RULE)),
            steps=[(1, "red")],
            decimals=0,
        ),
        number(
            _number(
                "Lost",
                "What recorders lost: spans, lines, or the last figures of a program that ended. The ledger "
                "lost nothing, and lost spans take nothing from what is drawn here.",
            ),
            now(total(dropped)),
            steps=[(1, "red")],
            decimals=0,
        ),
    ]


def _half(title: str, text: str, unit: str) -> About:
    return About(title=title, text=text, unit=unit, source=PROMETHEUS, width=12)


def _decisions() -> list[Panel]:
    return [
        lines(
            _half("Decisions by outcome", "How many decisions a minute allowed, denied and asked.", "opm"),
            over_time(per_minute(DECISIONS, OF_RULE, by=OUTCOME), f"{{{{{OUTCOME}}}}}"),
            stacked=True,
            colours=VERDICTS,
        ),
        lines(
            _half("Denial rate by agent", "The share of an agent's decisions that refused.", "percentunit"),
            over_time(share(DECISIONS, DENY, OF_RULE, by=AGENT), f"{{{{{AGENT}}}}}"),
            top=1,
        ),
        ranking(
            _half("Top rules by denial", "The rules that refused most often.", "short"),
            now(
                f"topk(10, {total(DECISIONS, f'{OF_RULE}, {DENY}', by=MIDDLEWARE)} > 0)",
                f"{{{{{MIDDLEWARE}}}}}",
            ),
        ),
        lines(
            _half(
                "Denials by moment", "Where it was refused: a message, a call, a result, the answer.", "opm"
            ),
            over_time(per_minute(DECISIONS, f"{OF_RULE}, {DENY}", by=MOMENT), f"{{{{{MOMENT}}}}}"),
            stacked=True,
        ),
        _rules(),
    ]


def _rules() -> Panel:
    text = (
        "Every rule: how often it decided, what, how long it took, and how often it broke. A rule that never "
        "denies may be dead; one that is slow slows every call."
    )
    denied = total(DECISIONS, f"{OF_RULE}, {DENY}", by=MIDDLEWARE)
    asked = total(DECISIONS, f"{OF_RULE}, {ASK}", by=MIDDLEWARE)
    return rows(
        About(title="Rules", text=text, unit="short", source=PROMETHEUS, width=24, height=9),
        cells(total(DECISIONS, OF_RULE, by=MIDDLEWARE), "hits"),
        cells(denied, "denied"),
        cells(asked, "asked"),
        cells(quantile(0.95, semconv.MIDDLEWARE_DURATION, OF_RULE, by=MIDDLEWARE, window=RANGE), "p95"),
        cells(total(ERRORS, OF_RULE, by=MIDDLEWARE), "errors"),
        joined=MIDDLEWARE,
        hidden=[f"Time{place}" for place in ("", " 1", " 2", " 3", " 4", " 5")],
        columns=[
            Column(name=MIDDLEWARE, title="Rule"),
            Column(name="Value #hits", title="Decisions"),
            Column(name="Value #denied", title="Denied"),
            Column(name="Value #asked", title="Asked"),
            Column(name="Value #p95", title="Time, p95", unit="s"),
            Column(name="Value #errors", title="Broken"),
        ],
    )


def _people() -> list[Panel]:
    latency = [
        over_time(
            quantile(q, semconv.APPROVAL_LATENCY, by=ANSWER, window=RANGE),
            f"{{{{{ANSWER}}}}} p{q * 100:.0f}",
            ref,
        )
        for q, ref in ((0.5, "A"), (0.95, "B"))
    ]
    return [
        lines(
            # People answer some times a day: in the window of a rate there would hardly ever be one.
            _half(
                "Time to an answer",
                "How long people took, by what they answered; each point looks back as long as the whole is.",
                "s",
            ),
            *latency,
        ),
        lines(
            _half("Answers", "How many questions a minute were answered, and how.", "opm"),
            over_time(per_minute(LATENCY, by=ANSWER), f"{{{{{ANSWER}}}}}"),
            stacked=True,
            colours=ANSWERS,
        ),
    ]


def _redactions() -> Panel:
    series = counter(semconv.REDACTION_COUNT)
    return lines(
        _half("Redactions by strategy", "How many values a minute were taken out of decisions.", "opm"),
        over_time(per_minute(series, by=STRATEGY), f"{{{{{STRATEGY}}}}}"),
        stacked=True,
    )


def _losses() -> list[Panel]:
    text = "What recorders lost a minute, because it was too much at once or nobody took it."
    return [
        lines(
            _half("Lost by recorders", text, "opm"),
            over_time(per_minute(counter(semconv.RECORDER_DROPPED), by=WATCHER), f"{{{{{WATCHER}}}}} lost"),
            over_time(
                per_minute(counter(semconv.RECORDER_ERRORS), by=WATCHER), f"{{{{{WATCHER}}}}} failed", "B"
            ),
        ),
        lines(
            _half(
                "Waiting in recorders", "What waits to be shipped; a queue that stays full loses.", "short"
            ),
            over_time(f"max by ({WATCHER}) ({gauge(semconv.RECORDER_QUEUE)})", f"{{{{{WATCHER}}}}}"),
        ),
    ]


def _jaeger() -> Panel:
    text = "The newest traces with a decision that refused, those of rules in shadow included."
    return rows(
        About(title="Traces with a denial", text=text, unit="short", source=JAEGER, width=24, height=10),
        JaegerSearch(tags={semconv.OUTCOME: "deny"}),
    )


def _tempo() -> Panel:
    text = (
        "The spans of decisions that refused, those of rules in shadow included, with the rule and the tool."
    )
    shown = ", ".join(f"span.{name}" for name in (semconv.MIDDLEWARE, semconv.TOOL_NAME, semconv.RUN_ID))
    return rows(
        About(title="Denied decisions", text=text, unit="short", source=TEMPO, width=24, height=10),
        traceql(f'{{ span.{semconv.OUTCOME} = "deny" && {TRACEQL_AGENT} }} | select({shown})', spans=True),
    )
