"""Writes the dashboards: `python -m dashboards.grafana`, in a clone with the extra `dev`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync

from dashboards.grafana.governance import governance
from dashboards.grafana.runs import runs

HERE: Final = Path(__file__).parent

_FILLED: Final[dict[str, tuple[Callable[[Dashboard], Dashboard], str]]] = {
    "governance": (governance, "What AI agents decide: rules, people, refusals, redactions."),
    "runs": (runs, "How the runs of AI agents end, how long they take, and which never ended."),
}


def made() -> dict[str, str]:
    """The text of every dashboard, by the name of its file."""
    return {f"{name}.json": _text(name, *filled) for name, filled in _FILLED.items()}


def _text(name: str, fill: Callable[[Dashboard], Dashboard], about: str) -> str:
    dashboard = (
        Dashboard(f"Footprint {name}")
        .uid(f"footprint-{name}")
        .description(about)
        .tags(["footprint", "agents"])
        .timezone("browser")
        .time("now-24h", "now")
        .refresh("1m")
        .tooltip(DashboardCursorSync.CROSSHAIR)
    )
    whole: dict[str, Any] = json.loads(json.dumps(fill(dashboard).build(), cls=JSONEncoder))
    # Grafana needs numbers to tell panels apart, and gives new ones at every import without them.
    for number, panel in enumerate(_all(whole["panels"]), 1):
        panel["id"] = number
    return json.dumps(whole, indent=2, sort_keys=True) + "\n"


def _all(panels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for panel in panels for one in (panel, *_all(panel.get("panels", [])))]


if __name__ == "__main__":
    for file, text in made().items():
        (HERE / file).write_text(text, encoding="utf-8")
