"""What a reader chooses at the top of a dashboard: data sources, agents, rules, tools."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import DatasourceVariable, QueryVariable, TextBoxVariable
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import (
    VariableModel,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from dashboards.grafana.names import AGENT, MIDDLEWARE, OF_AGENT, TOOL, counter, histogram
from dashboards.grafana.queries import EVERY, JAEGER, LEDGER, PROMETHEUS, TEMPO
from footprint_observe import semconv

Variable = Builder[VariableModel]


def sources() -> list[Variable]:
    """The data sources, each by the name that the provisioning gives it."""
    named = (("prometheus", "Prometheus", PROMETHEUS), ("ledger", "Ledger", LEDGER))
    traces = (("jaeger", "Jaeger", JAEGER), ("tempo", "Tempo", TEMPO))
    return [
        DatasourceVariable(word)
        .label(name)
        .type(source.type_val or "")
        .current(VariableOption(selected=True, text=name, value=name))
        for word, name, source in (*named, *traces)
    ]


def agent() -> Variable:
    """Which agents."""
    return _of_labels("agent", "Agent", f"label_values({counter(semconv.RUNS)}, {AGENT})")


def rule() -> Variable:
    """Which rules."""
    return _of_labels(
        "rule", "Rule", f"label_values({counter(semconv.DECISIONS)}{{{OF_AGENT}}}, {MIDDLEWARE})"
    )


def tool() -> Variable:
    """Which tools."""
    series = histogram(semconv.TOOL_DURATION, "count")
    return _of_labels("tool", "Tool", f"label_values({series}{{{OF_AGENT}}}, {TOOL})")


def service() -> Variable:
    """The service whose traces are searched for in Jaeger."""
    return _text("service", "Service of the traces", "footprint")


def run() -> Variable:
    """The run that is looked at by itself."""
    return _text("run", "Run", "")


def _text(name: str, label: str, value: str) -> Variable:
    made = TextBoxVariable(name).label(label).default_value(value)
    return made.current(VariableOption(text=value, value=value))


def _of_labels(name: str, label: str, query: str) -> Variable:
    every = VariableOption(selected=True, text=["All"], value=["$__all"])
    made = QueryVariable(name).label(label).datasource(PROMETHEUS).query(query).current(every)
    made = made.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.ALPHABETICAL_ASC)
    return made.multi(multi=True).include_all(include_all=True).all_value(EVERY)
