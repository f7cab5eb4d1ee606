"""The panels of the committed dashboards and their queries, as Grafana would send them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from footprint_observe.shipped import dashboards

DASHBOARDS = ("governance", "runs")
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


def promql(text: str, *, window: str = "5m", agent: str = ".*", rule: str = ".*", tool: str = ".*") -> str:
    """A PromQL query with the variables filled in."""
    chosen = {"$__rate_interval": window, "$__range": window, "$agent": agent, "$rule": rule, "$tool": tool}
    return _filled(text, chosen)


def sql(text: str, *, since: float, until: float, run: str = "", **chosen: str) -> str:
    """A question to the ledger with the variables filled in; times in seconds since 1970."""
    variables = {f"${{{name}:csv}}": chosen.get(name, ".*") for name in ("agent", "rule", "tool")}
    times = {"$__from": str(int(since * 1000)), "$__to": str(int(until * 1000))}
    return _filled(text, {**variables, **times, "${run:sqlstring}": f"'{run}'"})


def traceql(text: str) -> str:
    """A TraceQL search with the variables filled in."""
    return _filled(text, {"${agent:pipe}": ".*"})


def _filled(text: str, variables: dict[str, str]) -> str:
    for name in sorted(variables, key=len, reverse=True):
        text = text.replace(name, variables[name])
    left = re.findall(r"\$[\w{][^\s\"']*", text)
    assert not left, f"nothing is filled in for {left}"
    return text
