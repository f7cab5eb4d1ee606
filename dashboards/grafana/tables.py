"""Tables, and where a click in one leads: to a trace, or to all of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.dashboard import DataSourceRef, DynamicConfigValue

from dashboards.grafana.panels import OUTCOMES, PLAIN, STATUSES, About, Colours, Panel
from dashboards.grafana.queries import JAEGER, MIXED, TEMPO, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """How a column of a table looks, by its name.

    Attributes:
        name: Its name.
        title: Its heading; the name when it is not given.
        unit: Its unit; the table's when it is not given.
        width: In pixels; what is left when it is not given.
        links: Where a click on it leads: titles and addresses.
        colours: Of the words in it.
    """

    name: str
    title: str = ""
    unit: str = ""
    width: int = 0
    links: tuple[tuple[str, str], ...] = ()
    colours: Colours = PLAIN


def rows(
    about: About,
    query: Query,
    *more: Query,
    columns: Sequence[Column] = (),
    joined: str = "",
    hidden: Sequence[str] = (),
) -> Panel:
    """A table. Several queries are joined into one by the column that is named."""
    made = (
        table.Panel()
        .title(about.title)
        .description(about.text)
        .unit(about.unit)
        .datasource(about.source or MIXED)
        .span(about.width)
        .height(about.height)
        .filterable(filterable=True)
        .no_value("")
        .targets([query, *more])
    )
    if joined:
        by = {"byField": joined, "mode": "outer"}
        made = made.with_transformation(model.DataTransformerConfig(id_val="joinByField", options=by))
    if hidden:
        left_out = {"excludeByName": dict.fromkeys(hidden, True)}
        made = made.with_transformation(model.DataTransformerConfig(id_val="organize", options=left_out))
    for column in columns:
        made = made.override_by_name(column.name, _looks(column))
    return made


def _looks(column: Column) -> list[DynamicConfigValue]:
    found: list[tuple[str, object]] = []
    if column.title:
        found.append(("displayName", column.title))
    if column.unit:
        found.append(("unit", column.unit))
    if column.width:
        found.append(("custom.width", column.width))
    if column.links:
        found.append(("links", [{"title": title, "url": url} for title, url in column.links]))
    if column.colours:
        words = {word: {"color": colour, "index": n} for n, (word, colour) in enumerate(column.colours)}
        found.append(("mappings", [{"type": "value", "options": words}]))
        found.append(("custom.cellOptions", {"type": "color-text"}))
    return [DynamicConfigValue(id_val=id, value=value) for id, value in found]


def _explored(source: DataSourceRef) -> str:
    """The address in Explore of the trace whose id was clicked on."""
    trace = "${__value.raw}"
    query: dict[str, object] = {"refId": "A", "datasource": {"type": source.type_val, "uid": source.uid}}
    # Jaeger takes the id of a trace where it has no type of query, and Tempo as TraceQL.
    query |= {"query": trace} | ({"queryType": "traceql"} if source.type_val == "tempo" else {})
    pane = {"datasource": source.uid, "queries": [query], "range": {"from": "${__from}", "to": "${__to}"}}
    # Grafana puts values in place of ${...} before it reads the address, so these stay readable.
    panes = quote(json.dumps({"one": pane}, separators=(",", ":")), safe="${}_.:")
    return f"/explore?schemaVersion=1&panes={panes}"


def _of_run() -> str:
    """The address of a run in the dashboard of runs, at the same time and with the same data sources."""
    kept = "&".join(f"${{{variable}:queryparam}}" for variable in ("prometheus", "ledger", "jaeger", "tempo"))
    return f"/d/footprint-runs?${{__url_time_range}}&{kept}&var-run=${{__value.raw}}"


_TRACES = (("Trace in Jaeger", _explored(JAEGER)), ("Trace in Tempo", _explored(TEMPO)))

TIME: Final = Column(name="time", title="Time", unit="dateTimeAsIso", width=170)
RUN: Final = Column(name="run_id", title="Run", width=150, links=(("This run", _of_run()),))
TRACE: Final = Column(name="trace_id", title="Trace", width=150, links=_TRACES)
OUTCOME: Final = Column(name="outcome", width=100, colours=OUTCOMES)
STATUS: Final = Column(name="status", width=100, colours=STATUSES)
