"""The queries of panels, by data source; Jaeger and SQLite have none in the SDK."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from grafana_foundation_sdk.builders import prometheus, tempo
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.dashboard import DataSourceRef
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.tempo import SearchTableType

from footprint_observe import semconv

PROMETHEUS = DataSourceRef(type_val="prometheus", uid="${prometheus}")
JAEGER = DataSourceRef(type_val="jaeger", uid="${jaeger}")
TEMPO = DataSourceRef(type_val="tempo", uid="${tempo}")
LEDGER = DataSourceRef(type_val="frser-sqlite-datasource", uid="${ledger}")
MIXED = DataSourceRef(type_val="datasource", uid="-- Mixed --")

Query = Builder[Dataquery]

TRACEQL_AGENT = f'span.{semconv.AGENT_NAME} =~ "${{agent:pipe}}"'
"""Whether a span is of an agent that was chosen."""

EVERY = "0/*|.*|.*/"
"""All that can be chosen, which Grafana puts into queries as it is, and quotes for none of them.

To PromQL and TraceQL it is a pattern of three parts, of which the second matches everything. To SQL it is a
zero and a comment: the number 0 is no name, whatever somebody calls an agent.
"""

_FROM = "strftime('%Y-%m-%dT%H:%M:%f', $__from / 1000.0, 'unixepoch')"
_TO = "strftime('%Y-%m-%dT%H:%M:%f', $__to / 1000.0, 'unixepoch')"
_TRACE = """(
  select t.trace_id from facts as t where t.run_id = RUNS.run_id and t.trace_id is not null
  order by t.position desc limit 1
)"""
_RECENT = """RUN in (
  select b.run_id from facts as b
  where b.kind = 'run.configured' and b.recorded_us >= ($__from - 86400000) * 1000
)"""
_WORDS = re.compile(r"\b(seconds|within|recent|chosen|trace)\[([^\]]*)\]")


def _meant(word: re.Match[str]) -> str:
    """What stands for a word of `Sql`."""
    given = [part.strip() for part in word[2].split(",")]
    match word[1]:
        case "seconds":
            return f"cast(strftime('%s', {given[0]}) as integer)"
        case "within":
            # Times of the ledger are text that sorts; so are these bounds, which are shorter.
            return f"{given[0]} >= {_FROM} and {given[0]} < {_TO}"
        case "recent":
            # By the index of the beginnings of segments; without it, every row there ever was is looked at.
            return _RECENT.replace("RUN", given[0])
        case "chosen":
            column, variable = given
            words = f"${{{variable}:sqlstring}}"
            # Grafana puts a backslash before each double quote, too, which SQLite takes for a letter.
            return f"""(0 in ({words}) or replace({column}, '"', '\\"') in ({words}))"""
        case _:
            return _TRACE.replace("RUNS", given[0])


def over_time(expr: str, legend: str, ref: str = "A") -> Query:
    """A PromQL query that is drawn over time."""
    return prometheus.Dataquery().expr(expr).range().legend_format(legend).ref_id(ref).datasource(PROMETHEUS)


def now(expr: str, legend: str = "", ref: str = "A") -> Query:
    """A PromQL query that is asked once, at the end of the time that is looked at."""
    made = prometheus.Dataquery().expr(expr).instant().ref_id(ref).datasource(PROMETHEUS)
    return made.legend_format(legend) if legend else made


def cells(expr: str, ref: str) -> Query:
    """A PromQL query that is asked once and fills a column of a table."""
    made = prometheus.Dataquery().expr(expr).instant().ref_id(ref).datasource(PROMETHEUS)
    return made.format(PromQueryFormat.TABLE)


def traceql(query: str, ref: str = "A", *, spans: bool = False) -> Query:
    """A TraceQL search."""
    shown = SearchTableType.SPANS if spans else SearchTableType.TRACES
    made = tempo.TempoQuery().query_type("traceql").query(query).table_type(shown)
    return made.limit(50).filters([]).ref_id(ref).datasource(TEMPO)


@dataclass(slots=True, kw_only=True)
class JaegerSearch(Dataquery, Builder[Dataquery]):
    """A search in Jaeger: the newest traces of a service that have a span with these tags."""

    tags: dict[str, str]
    ref_id: str = "A"

    def build(self) -> Dataquery:
        """Itself."""
        return self

    def to_json(self) -> dict[str, object]:
        """As the data source reads it."""
        return {
            "datasource": JAEGER,
            "limit": 50,
            "queryType": "search",
            "refId": self.ref_id,
            "service": "$service",
            "tags": " ".join(f"{key}={value}" for key, value in self.tags.items()),
        }


@dataclass(slots=True, kw_only=True)
class Sql(Dataquery, Builder[Dataquery]):
    """A question to the ledger, in SQL with five words of our own.

    `seconds[column]` is a time as seconds since 1970. `within[column]` says whether it is in the time that
    is looked at. `recent[run_id]` says whether a segment of the run began there or on the day before, which
    makes a question cost what that time holds and not what the file does. `chosen[column, variable]` says
    whether a value was chosen at the top, where `EVERY` is all of them. `trace[runs]` is the newest trace of
    a run.
    """

    sql: str
    ref_id: str = "A"

    def build(self) -> Dataquery:
        """Itself."""
        return self

    def to_json(self) -> dict[str, object]:
        """As the data source reads it: it runs one of the texts and shows the other in its editor."""
        text = _WORDS.sub(_meant, textwrap.dedent(self.sql).strip())
        return {
            "datasource": LEDGER,
            "queryText": text,
            "queryType": "table",
            "rawQueryText": text,
            "refId": self.ref_id,
            "timeColumns": ["time"],
        }
