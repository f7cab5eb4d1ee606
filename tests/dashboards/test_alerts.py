"""The alerts: what each fires on, whether Prometheus takes them, and whether their names exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from footprint_observe import semconv
from footprint_observe.shipped import dashboards

yaml: Any = pytest.importorskip("yaml", reason="PyYAML comes with the extra `datasette`")

STORIES = Path(__file__).parent / "alerts_test.yaml"


def alerts() -> list[dict[str, Any]]:
    read = yaml.safe_load((dashboards() / "alerts.yaml").read_text(encoding="utf-8"))
    return [rule for group in read["groups"] for rule in group["rules"]]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool here (Debian: prometheus)")
@pytest.mark.parametrize(
    "check",
    [
        ("check", "rules", dashboards() / "alerts.yaml"),
        ("check", "config", dashboards() / "prometheus.yaml"),
        ("test", "rules", STORIES),
    ],
    ids=lambda check: " ".join(check[:2]),
)
def test_prometheus_takes_them_and_they_fire_as_told(check: tuple[str, str, Path]) -> None:
    done = subprocess.run(
        ["promtool", *map(str, check)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_story_in_which_it_fires() -> None:
    told = yaml.safe_load(STORIES.read_text(encoding="utf-8"))
    fired = {
        told["alertname"]
        for story in told["tests"]
        for told in story["alert_rule_test"]
        if told["exp_alerts"]
    }
    assert fired == {alert["alert"] for alert in alerts()}


def test_every_alert_says_what_happened_and_where_to_look() -> None:
    for alert in alerts():
        assert alert["labels"]["severity"] in {"critical", "warning"}
        assert set(alert["annotations"]) == {"summary", "description", "dashboard"}
        assert re.fullmatch(r"/d/footprint-(governance|runs)", alert["annotations"]["dashboard"])


def test_every_name_in_an_alert_exists() -> None:
    labels = {name.replace(".", "_") for name in semconv.NAMES.values()}
    series = {name.replace(".", "_") for name in semconv.METRICS.values()}
    kinds = re.compile(r"(_seconds)?(_total|_bucket|_sum|_count)?$")
    for alert in alerts():
        text = alert["expr"] + str(alert["annotations"])
        for name in re.findall(r"\b(?:footprint|gen_ai)_\w+", text):
            assert name in labels or kinds.sub("", name) in series, name
