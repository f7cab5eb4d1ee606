"""What viewers are set up with: whole, for this machine only, and speaking of the same names."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dashboard_queries import DASHBOARDS, loaded
from footprint_observe import semconv
from footprint_observe.shipped import dashboards
from seeded import seed

yaml: Any = pytest.importorskip("yaml", reason="PyYAML comes with the extra `datasette`")

ALL = sorted(path for path in dashboards().rglob("*.yaml") if "datasette" not in path.parts)


def read(name: str) -> Any:
    return yaml.safe_load((dashboards() / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_every_file_can_be_read_and_says_what_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert isinstance(yaml.safe_load(text), dict)


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = read("compose.yaml")["services"]
    return found


def test_every_port_is_open_to_this_machine_only() -> None:
    ports = [port for service in services().values() for port in service.get("ports", [])]
    assert {port.rsplit(":", 1)[1] for port in ports} == {"3000", "4317", "4318", "9090", "16686"}
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert not any(service.get("network_mode") == "host" for service in services().values())


def test_every_image_and_the_plugin_are_pinned() -> None:
    for service in services().values():
        assert re.fullmatch(r"[a-z-]+/[a-z-]+:v?\d+\.\d+\.\d+", service["image"]), service["image"]
    plugins = services()["grafana"]["environment"]["GF_INSTALL_PLUGINS"]
    assert re.fullmatch(r"frser-sqlite-datasource \d+\.\d+\.\d+", plugins)


def test_everything_that_is_mounted_is_shipped_or_a_volume() -> None:
    volumes = read("compose.yaml")["volumes"]
    for service in services().values():
        for mounted in service.get("volumes", []):
            source = mounted["source"] if isinstance(mounted, dict) else mounted.split(":")[0]
            if source.startswith("./"):
                assert (dashboards() / source).exists(), source
            else:
                assert source.startswith("${") or source in volumes, source


def test_grafana_may_write_beside_the_ledger_and_not_to_it() -> None:
    folder, file = (one for one in services()["grafana"]["volumes"] if "FOOTPRINT_LEDGER_DIR" in str(one))
    assert folder.endswith(":/ledger")
    assert file["read_only"]
    assert file["target"] == services()["grafana"]["environment"]["FOOTPRINT_DB"]
    assert file["source"].removeprefix("${FOOTPRINT_LEDGER_DIR}") == file["target"].removeprefix("/ledger")
    # Or Docker makes a folder in the place of a ledger that is not there yet.
    assert file["bind"] == {"create_host_path": False}


@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare here (Debian: util-linux)")
def test_a_ledger_on_a_read_only_mount_is_read_while_it_is_written(tmp_path: Path) -> None:
    folder, seen = tmp_path / "ledger", tmp_path / "seen"
    folder.mkdir()
    seen.mkdir()
    mount = "mount --bind {0} {1} && mount --bind {0}/a.db {1}/a.db && mount -o remount,bind,ro {1}/a.db"
    script = f"{mount.format(folder, seen)} && exec {sys.executable} -c 'import sys; exec(sys.stdin.read())'"
    (options,) = (
        one["jsonData"]["pathOptions"].split("&")[0]
        for one in read("provisioning/datasources/footprint.yaml")["datasources"]
        if one["uid"] == "footprint-ledger"
    )
    look = f"""
import sqlite3
file = sqlite3.connect("file:{seen}/a.db?{options}", uri=True)
print(file.execute("select count(*) from runs").fetchone()[0])
for mode in ("rw", "rwc"):
    try:
        sqlite3.connect(f"file:{seen}/a.db?mode={{mode}}", uri=True).execute("create table mine (a)")
    except sqlite3.OperationalError as error:
        print(error)
"""

    def looked() -> list[str]:
        done = subprocess.run(
            ["unshare", "--map-root-user", "--mount", "sh", "-c", script],
            input=look,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
        return done.stdout.splitlines()

    refused = ["attempt to write a readonly database"] * 2
    seed(folder / "a.db", 1)
    with closing(sqlite3.connect(folder / "a.db")) as writer:
        assert writer.execute("select count(*) from facts").fetchone()[0] > 1
        assert looked() == ["1", *refused]
    assert looked() == ["1", *refused]


def test_the_data_sources_have_the_names_that_the_dashboards_ask_for() -> None:
    provided = {
        (one["type"], one["name"]) for one in read("provisioning/datasources/footprint.yaml")["datasources"]
    }
    for dashboard in DASHBOARDS:
        asked = {
            (variable["query"], variable["current"]["text"])
            for variable in loaded(dashboard)["templating"]["list"]
            if variable["type"] == "datasource"
        }
        assert asked == provided


def test_the_environment_of_grafana_says_all_that_the_provisioning_asks() -> None:
    given = set(services()["grafana"]["environment"])
    for path in (dashboards() / "provisioning").rglob("*.yaml"):
        assert set(re.findall(r"(?<!\$)\$([A-Z_]+)", path.read_text(encoding="utf-8"))) <= given


def test_the_way_back_from_a_trace_asks_the_ledger() -> None:
    sources = {one["uid"]: one for one in read("provisioning/datasources/footprint.yaml")["datasources"]}
    for uid in ("footprint-jaeger", "footprint-tempo"):
        (back,) = sources[uid]["correlations"]
        assert sources[back["targetUID"]]["type"] == "frser-sqlite-datasource"
        target = back["config"]["target"]
        assert target["queryText"] == target["rawQueryText"]
        # Grafana fills in its environment first: two dollars stand for one.
        assert "$${" + back["config"]["field"] + "}" in target["queryText"]


def test_a_span_in_jaeger_leads_to_the_rows_of_its_run() -> None:
    (pattern,) = json.loads((dashboards() / "jaeger-ui.json").read_text(encoding="utf-8"))["linkPatterns"]
    assert pattern["key"] in semconv.NAMES.values()
    runs = loaded("runs")
    assert pattern["url"].endswith(f"/d/{runs['uid']}?var-run=#{{{pattern['key']}}}")
    assert "run" in {variable["name"] for variable in runs["templating"]["list"]}


def test_the_collector_sends_what_it_takes_in() -> None:
    collector = read("collector.yaml")
    for pipeline in collector["service"]["pipelines"].values():
        for part in ("receivers", "processors", "exporters"):
            assert set(pipeline[part]) <= set(collector[part])
    exporters = {
        name for pipeline in collector["service"]["pipelines"].values() for name in pipeline["exporters"]
    }
    assert exporters == set(collector["exporters"])
    environment = set(services()["collector"]["environment"])
    text = (dashboards() / "collector.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{env:(\w+)", text)) == environment


def test_what_an_ended_program_said_is_gone_before_prometheus_would_forget_it() -> None:
    # Prometheus draws a series for five minutes behind its last sample; no longer does the collector.
    assert read("collector.yaml")["exporters"]["prometheus"]["metric_expiration"] == "5m"


def test_prometheus_scrapes_where_the_collector_and_the_programs_answer() -> None:
    (job,) = read("prometheus.yaml")["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["localhost:9464"]}]
    assert read("collector.yaml")["exporters"]["prometheus"]["endpoint"].endswith(":9464")
    assert services()["prometheus"]["network_mode"] == "service:collector"
    assert "127.0.0.1:9090:9090" in services()["collector"]["ports"]
