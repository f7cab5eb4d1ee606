"""What another site, open in the same browser, gets of a served ledger."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from browsed import Served, serving
from commanded import demonstrate
from viewers.chromium import Page, chromium

TOKEN = "a-token-of-the-test-0123456789"


@pytest.fixture(scope="module")
def page() -> Generator[Page]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(demonstrate(tmp_path_factory.mktemp("sites") / "l.db"))


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """The address of another site: to a browser, localhost is another one than 127.0.0.1."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "index.html").write_text("<title>elsewhere</title>", encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        running = Thread(target=server.serve_forever)
        running.start()
        try:
            yield f"http://localhost:{server.server_port}/"
        finally:
            server.shutdown()
            running.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        del format, args


def _followed(page: Page, elsewhere: str, served: Served, link: str) -> str:
    """What is read where a link leads that stands in a page of another site."""
    page.open(elsewhere)
    page.run(
        "const link = document.createElement('a'); link.href = arguments[0]; document.body.append(link);"
        "link.click()",
        f"{served.url}{link}",
    )
    page.wait(f"location.port === '{served.port}' && document.readyState === 'complete'")
    (text,) = page.texts("body")
    return text


def test_a_link_on_another_site_leads_to_a_ready_page_and_asks_no_question_of_its_own(
    page: Page, path: Path, elsewhere: str
) -> None:
    with serving(path) as served:
        assert "The latest denials" in _followed(page, elsewhere, served, "/ledger/latest_denials")
        for chosen in ("facts?_where=1%3D1", "facts?middleware=x", "timeline?run_id=x", "facts/1"):
            assert "Another site asked" in _followed(page, elsewhere, served, f"/ledger/{chosen}"), chosen
        page.open(f"{served.url}/ledger/facts?_where=1%3D1")
        assert "Another site" not in page.texts("body")[0]


def test_the_sign_in_link_works_on_another_site_and_other_links_do_not_carry_the_cookie(
    page: Page, path: Path, elsewhere: str
) -> None:
    with serving(path, lines=2, FOOTPRINT_TOKEN=TOKEN) as served:
        _followed(page, elsewhere, served, f"/-/sign-in?token={TOKEN}")
        page.wait("location.pathname === '/' && document.querySelector('h1')")
        assert page.texts("h1") == ["The ledger of what agents decided"]
        assert "A token is needed" in _followed(page, elsewhere, served, "/ledger/latest_denials")
        page.open(f"{served.url}/ledger/latest_denials")
        assert page.texts("h1") == ["The latest denials, and why"]
