"""A served ledger as a person sees it, in a browser."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from browsed import Served, seeded_file, serving
from browsed_rows import Counted
from footprint_core import Agent, ToolCallContext, ToolOutcome, deny
from footprint_core.providers import Scripted, call, reply
from footprint_observe import SqliteLedger
from viewers.chromium import Page, chromium
from viewers.pictures import FOLDER, MOST_BYTES, pictures, see_dashboard, see_queries

HOSTILE = "<img src=x onerror='window.owned = 1'><script>window.owned = 1</script>"


@pytest.fixture(scope="module")
def page() -> Generator[Page]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return seeded_file(tmp_path_factory.mktemp("seen"))


@pytest.fixture(scope="module")
def served(file: Path) -> Generator[Served]:
    with serving(file) as running:
        yield running


def test_the_dashboard_shows_what_is_in_the_file(page: Page, served: Served, file: Path) -> None:
    see_dashboard(page, served, Counted(file))


def test_every_named_query_has_a_page_with_rows(page: Page, served: Served) -> None:
    see_queries(page, served)


def test_a_run_leads_to_its_timeline_and_a_call_to_its_why(page: Page, served: Served) -> None:
    page.open(f"{served.url}/ledger/latest_denials")
    page.run("document.querySelector('td.col-tool_call_id a').click()")
    page.wait("document.title.includes('Why') || location.pathname === '/ledger/why'")
    page.wait("document.querySelector('.rows-and-columns')")
    assert "call.taken" in page.texts("td.col-kind")
    page.run("document.querySelector('td.col-run_id a').click()")
    page.wait("location.pathname === '/ledger/timeline' && document.querySelector('.rows-and-columns')")
    assert page.texts("td.col-kind")[0] == "run.configured"


def test_one_panel_has_a_page_of_its_own(page: Page, served: Served) -> None:
    page.open(f"{served.url}/-/dashboards/governance/by_day")
    page.wait("document.body.dataset.drawn")
    assert page.texts(".panel h2") == ["Decisions by day"]
    assert page.run("return document.querySelectorAll('.panel svg').length") == 1


def test_a_query_that_is_stopped_says_so_in_its_panel(page: Page, tmp_path: Path) -> None:
    with serving(seeded_file(tmp_path), "--timeout", "0.1") as running:
        page.open(f"{running.url}/-/dashboards/governance")
        page.wait("document.body.dataset.drawn")
        page.run(
            "window.said = null; const place = document.querySelector('[data-panel=decisions]');"
            "draw(place, {db: 'ledger', library: 'metric', display: {field: 'n'}, query: arguments[0]})"
            ".then(() => { window.said = place.innerText; })",
            "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) as n from n",
        )
        page.wait("window.said")
        assert page.run("return window.said") == "SQL Interrupted"


def test_what_a_model_or_a_rule_wrote_is_text_on_every_page(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    asyncio.run(_run_refused(path, HOSTILE))
    with serving(path) as running:
        page.open(f"{running.url}/-/dashboards/governance")
        page.wait("document.body.dataset.drawn")
        assert page.texts("#panel-latest_denials td:nth-child(4)") == [HOSTILE[:120]]
        for name in ("latest_denials", "why", "timeline"):
            page.open(f"{running.url}/ledger/{name}")
            assert HOSTILE[:40] in page.texts("body")[0]
            assert page.run("return [document.images.length, window.owned]") == [0, None]


@pytest.mark.parametrize("name", ["refund-ceiling-" * 20, "r" * 300])
def test_what_a_rule_of_a_long_name_decided_is_on_the_screen(page: Page, tmp_path: Path, name: str) -> None:
    path = tmp_path / "l.db"
    asyncio.run(_run_refused(path, name))
    with serving(path) as running:
        for address, cells in (
            ("ledger/why", "td.col-said"),
            ("ledger/timeline", "td.col-said"),
            ("ledger/latest_denials", "td.col-why"),
            ("-/dashboards/governance", "#panel-latest_denials td:nth-child(4)"),
        ):
            page.open(f"{running.url}/{address}")
            page.wait(f"document.querySelector('{cells}')")
            right, room = page.run(
                "const found = [...document.querySelectorAll(arguments[0])];"
                "return [Math.max(...found.map(e => e.getBoundingClientRect().right)), innerWidth]",
                cells,
            )
            assert right <= room, address


async def _run_refused(path: Path, named: str) -> None:
    class Refuses:
        name = named
        version = HOSTILE

        def on_tool_call(self, call: ToolCallContext, /) -> ToolOutcome:
            del call
            return deny(HOSTILE)

    def pay(note: str) -> str:
        return note

    model = Scripted([reply(calls=[call("1", "pay", {"note": HOSTILE})]), reply(text=HOSTILE)])
    builder = Agent.create(provider=model, model=HOSTILE, name=HOSTILE).tool(pay).act(before_tool=[Refuses()])
    async with builder.ledger(SqliteLedger(path)).build() as agent:
        await agent.run(HOSTILE)


def test_the_pictures_are_those_of_these_pages_and_of_a_modest_size(
    page: Page, served: Served, file: Path
) -> None:
    taken = dict(pictures(page, served, Counted(file)))
    assert {one.name for one in FOLDER.glob("*.png")} >= taken.keys()
    for name, png in taken.items():
        assert png.startswith(b"\x89PNG")
        assert len(png) < MOST_BYTES
        assert (FOLDER / name).stat().st_size < MOST_BYTES
