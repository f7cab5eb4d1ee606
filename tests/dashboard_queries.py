"""The panels of the committed dashboards and their queries, as Grafana would send them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from footprint_observe.shipped import dashboards

DASHBOARDS = ("governance", "runs")
CHOICES = ("agent", "rule", "tool")
Kind = Literal["prometheus", "frser-sqlite-datasource", "jaeger", "tempo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One query of one panel.

    Attributes:
        dashboard: The dashboard.
        panel: The title of its panel.
        kind: The type of its data source.
        ref: What the panel calls it.
        text: The query, its variables not filled in.
        target: All of it.
    """

    dashboard: str
    panel: str
    kind: Kind
    ref: str
    text: str
    target: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.dashboard}/{self.panel}/{self.ref}"


def loaded(dashboard: str) -> dict[str, Any]:
    """A dashboard as it is committed."""
    text = (dashboards() / "grafana" / f"{dashboard}.json").read_text(encoding="utf-8")
    whole: dict[str, Any] = json.loads(text)
    return whole


def panels(dashboard: str) -> Iterator[dict[str, Any]]:
    """Its panels, those in collapsed rows too, and the rows."""
    for panel in loaded(dashboard)["panels"]:
        yield panel
        yield from panel.get("panels", [])


def asked(kind: Kind) -> list[Asked]:
    """Every query to one type of data source."""
    field = {
        "prometheus": "expr",
        "frser-sqlite-datasource": "rawQueryText",
        "tempo": "query",
        "jaeger": "tags",
    }
    return [
        Asked(
            dashboard=dashboard,
            panel=panel["title"],
            kind=kind,
            ref=target["refId"],
            text=target[field[kind]],
            target=target,
        )
        for dashboard in DASHBOARDS
        for panel in panels(dashboard)
        for target in panel.get("targets", [])
        if target["datasource"]["type"] == kind
    ]


def named(kind: Kind) -> dict[str, Asked]:
    """The same, by their names."""
    return {str(one): one for one in asked(kind)}


def every(name: str) -> str:
    """What stands for all that can be chosen; Grafana puts it into every query as it is."""
    (value,) = {
        variable["allValue"]
        for dashboard in DASHBOARDS
        for variable in loaded(dashboard)["templating"]["list"]
        if variable["name"] == name
    }
    return str(value)


def promql(text: str, *, window: str = "5m", **chosen: Collection[str]) -> str:
    """A PromQL query with the variables filled in; all of what is not chosen."""
    variables = {f"${name}": _pattern(name, chosen.get(name)) for name in CHOICES}
    return _filled(text, {"$__rate_interval": window, "$__range": window, **variables})


def sql(
    text: str, *, since: float, until: float, now: int | None = None, run: str = "", **chosen: Collection[str]
) -> str:
    """A question to the ledger with the variables filled in; times in seconds since 1970."""
    variables = {f"${{{name}:sqlstring}}": _quoted(name, chosen.get(name)) for name in CHOICES}
    times = {"$__from": str(int(since * 1000)), "$__to": str(int(until * 1000))}
    filled = _filled(text, {**variables, **times, "${run:sqlstring}": _sqlstring(run)})
    return filled if now is None else filled.replace("'now'", f"{now}, 'unixepoch'")


def traceql(text: str) -> str:
    """A TraceQL search with the variables filled in."""
    return _filled(text, {"${agent:pipe}": every("agent")})


def _pattern(name: str, words: Collection[str] | None) -> str:
    if words is None:
        return every(name)
    # Grafana puts a backslash before what means something in a pattern, and a second one for the string.
    return f"({'|'.join(re.escape(word).replace(chr(92), chr(92) * 2) for word in words)})"


def _quoted(name: str, words: Collection[str] | None) -> str:
    return every(name) if words is None else ",".join(map(_sqlstring, words))


def _sqlstring(word: str) -> str:
    """A text as Grafana's format `sqlstring` has it: a double quote gets a backslash, as for MySQL."""
    text = word.replace("'", "''").replace('"', chr(92) + '"')
    return f"'{text}'"


def _filled(text: str, variables: dict[str, str]) -> str:
    # In one go: what was filled in is not looked at again.
    names = "|".join(re.escape(name) for name in sorted(variables, key=len, reverse=True))
    left = re.findall(r"\$[\w{][^\s\"']*", re.sub(names, "", text))
    assert not left, f"nothing is filled in for {left}"
    return re.sub(names, lambda found: variables[found[0]], text)
