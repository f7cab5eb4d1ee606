"""The dashboard "Runs": how runs end, how long they take, what they cost, and which never ended."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from dashboards.grafana import runs_ledger as ledger
from dashboards.grafana import variables
from dashboards.grafana.names import (
    AGENT,
    MODEL,
    OF_AGENT,
    OF_TOOL,
    RANGE,
    RUN_OUTCOME,
    STATUS,
    TOKEN_TYPE,
    TOOL,
    counter,
    histogram,
    per_minute,
    quantile,
    share,
    total,
)
from dashboards.grafana.panels import OUTCOMES, STATUSES, About, Panel, lines, link, number
from dashboards.grafana.queries import (
    JAEGER,
    PROMETHEUS,
    TEMPO,
    TRACEQL_AGENT,
    JaegerSearch,
    Query,
    now,
    over_time,
    traceql,
)
from dashboards.grafana.tables import rows
from footprint_observe import semconv

RUNS = counter(semconv.RUNS)
TOOLS = counter(semconv.TOOLS)
ENDED = f'{OF_AGENT}, {RUN_OUTCOME}!~"paused|abandoned"'


def runs(dashboard: Dashboard) -> Dashboard:
    """Fill the dashboard."""
    chosen = (variables.agent(), variables.tool(), variables.service(), variables.run())
    for variable in (*variables.sources(), *chosen):
        dashboard.with_variable(variable)
    dashboard.link(link("Governance", "footprint-governance"))
    for panel in _numbers():
        dashboard.with_panel(panel)
    for title, panels in (
        ("Outcomes", _outcomes()),
        ("Tools", [*_tools(), ledger.tools()]),
        ("Models", _models()),
        ("Runs in the ledger", [ledger.without_end(), ledger.in_doubt(), ledger.slowest()]),
        ("Metrics against rows", [ledger.agreement()]),
        ("One run", [ledger.decisions(), ledger.calls()]),
    ):
        dashboard.with_row(Row(title))
        for panel in panels:
            dashboard.with_panel(panel)
    # A viewer of traces that nobody has would be asked, and fail, whenever the dashboard is opened.
    for title, panel in (("Runs in Jaeger", _jaeger()), ("Runs in Tempo", _tempo())):
        dashboard.with_row(Row(title).collapsed(collapsed=True).with_panel(panel))
    return dashboard


def _number(title: str, text: str, unit: str = "short") -> About:
    return About(title=title, text=text, unit=unit, source=PROMETHEUS, width=3, height=4)


def _numbers() -> list[Panel]:
    tokens = histogram(semconv.TOKEN_USAGE, "sum")
    long = quantile(0.95, semconv.RUN_DURATION, OF_AGENT, window=RANGE)
    return [
        number(
            _number("Runs", "Runs that ended; a run that waits for a person has not."),
            now(total(RUNS, ENDED)),
            decimals=0,
        ),
        number(
            _number("Answered", "The share of runs that ended with an answer.", "percentunit"),
            now(share(RUNS, f'{RUN_OUTCOME}="answered"', ENDED, window=RANGE)),
        ),
        number(
            _number(
                "Failed", "The share of runs that ended with an error, of a model or a ledger.", "percentunit"
            ),
            now(share(RUNS, f'{RUN_OUTCOME}="failed"', ENDED, window=RANGE)),
            steps=[(0.02, "orange"), (0.1, "red")],
        ),
        number(
            _number(
                "Duration, p95", "How long segments of runs take; waiting for a person is no part of it.", "s"
            ),
            now(long),
        ),
        number(
            _number("Model calls a run", "How many model calls a run takes, on average."),
            now(_average(semconv.RUN_ITERATIONS, OF_AGENT)),
            decimals=1,
        ),
        number(
            _number("Failed calls", "Calls of tools that raised, of those that ran.", "percentunit"),
            now(share(TOOLS, f'{STATUS}="failed"', f'{OF_AGENT}, {STATUS}=~"ran|failed"', window=RANGE)),
            steps=[(0.05, "orange"), (0.2, "red")],
        ),
        number(
            _number("Tokens", "Tokens read and written by models, of all agents, as far as models say."),
            now(total(tokens)),
        ),
        ledger.open_runs(),
    ]


def _average(metric: str, where: str) -> str:
    grown = [f"sum(increase({histogram(metric, part)}{{{where}}}[{RANGE}]))" for part in ("sum", "count")]
    return f"{grown[0]} / ({grown[1]} > 0)"


def _part(title: str, text: str, unit: str) -> About:
    return About(title=title, text=text, unit=unit, source=PROMETHEUS, width=8)


def _quantiles(metric: str, where: str, by: str) -> tuple[Query, Query]:
    half, most = (
        over_time(quantile(q, metric, where, by=by), f"{{{{{by}}}}} p{round(q * 100)}", ref)
        for q, ref in ((0.5, "A"), (0.95, "B"))
    )
    return half, most


def _outcomes() -> list[Panel]:
    ended = "How many segments of runs a minute ended, and how; one that waits for a person is paused."
    return [
        lines(
            _part("Ends by outcome", ended, "opm"),
            over_time(per_minute(RUNS, OF_AGENT, by=RUN_OUTCOME), f"{{{{{RUN_OUTCOME}}}}}"),
            stacked=True,
            colours=OUTCOMES,
        ),
        lines(
            _part("Duration", "How long segments take, without the time people take.", "s"),
            *_quantiles(semconv.RUN_DURATION, OF_AGENT, AGENT),
        ),
        lines(
            _part(
                "Model calls by agent",
                "A run that needs more and more of them goes round in circles.",
                "short",
            ),
            *_quantiles(semconv.RUN_ITERATIONS, OF_AGENT, AGENT),
        ),
    ]


def _tools() -> list[Panel]:
    asked = "How many calls a minute ran, failed, or were not let through; paused ones come again."
    return [
        lines(
            _part("Calls by status", asked, "opm"),
            over_time(per_minute(TOOLS, OF_AGENT, by=STATUS), f"{{{{{STATUS}}}}}"),
            stacked=True,
            colours=STATUSES,
        ),
        lines(
            _part("Time of tools, p95", "How long the bodies of tools take; only calls that ran.", "s"),
            over_time(quantile(0.95, semconv.TOOL_DURATION, OF_TOOL, by=TOOL), f"{{{{{TOOL}}}}}"),
        ),
        lines(
            _part("Runs of tools", "How many calls a minute ran, by tool.", "opm"),
            over_time(
                per_minute(histogram(semconv.TOOL_DURATION, "count"), OF_TOOL, by=TOOL), f"{{{{{TOOL}}}}}"
            ),
            stacked=True,
        ),
    ]


def _models() -> list[Panel]:
    tokens = histogram(semconv.TOKEN_USAGE, "sum")
    both = f"{MODEL}, {TOKEN_TYPE}"
    first = quantile(0.95, semconv.TIME_TO_FIRST_CHUNK, by=MODEL)
    return [
        lines(
            _part("Tokens by model", "Tokens a minute, read and written, of all agents.", "short"),
            over_time(per_minute(tokens, by=both), f"{{{{{MODEL}}}}} {{{{{TOKEN_TYPE}}}}}"),
        ),
        lines(
            _part("Time of models", "How long calls of models take, those that failed included.", "s"),
            *_quantiles(semconv.OPERATION_DURATION, "", MODEL),
        ),
        lines(
            _part("Time to the first chunk, p95", "Of models that stream.", "s"),
            over_time(first, f"{{{{{MODEL}}}}}"),
        ),
    ]


def _jaeger() -> Panel:
    text = (
        "The newest runs of the service; the tree of one shows its model calls, its tools and its decisions."
    )
    return rows(
        About(title="Latest runs", text=text, unit="short", source=JAEGER, width=24, height=10),
        JaegerSearch(tags={semconv.OPERATION_NAME: semconv.INVOKE_AGENT}),
    )


def _tempo() -> Panel:
    text = "Runs that took more than five seconds, or failed."
    wanted = f'span.{semconv.OPERATION_NAME} = "{semconv.INVOKE_AGENT}" && {TRACEQL_AGENT}'
    shown = ", ".join(f"span.{name}" for name in (semconv.AGENT_NAME, semconv.RUN_OUTCOME, semconv.RUN_ID))
    return rows(
        About(title="Slow and failed runs", text=text, unit="short", source=TEMPO, width=24, height=10),
        traceql(
            f'{{ {wanted} && (duration > 5s || span.{semconv.RUN_OUTCOME} = "failed") }} | select({shown})',
            spans=True,
        ),
    )
