"""Who may ask a served ledger: what other sites in a browser try, and who has no token."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path

import pytest

from browsed import Served, serving
from commanded import demonstrate

TOKEN = "a-token-of-the-test-0123456789"
READY = ("/", "/ledger", "/ledger/why", "/ledger/facts", "/-/dashboards", "/-/dashboards/governance")
"""Pages another site may link to: what they ask is always the same."""

CHOSEN = (
    "/ledger?sql=select+1",
    "/ledger/facts?_where=1%3D1",
    "/ledger/facts?middleware=x",
    "/ledger/facts?middleware__like=x%25",
    "/ledger/facts?_sort=why",
    "/ledger/facts?_size=max",
    "/ledger/timeline?run_id=1",
    "/ledger/latest_denials?rule=refund-ceiling",
    "/ledger/decisions_by_day?x",
    "/ledger/facts/7",
    "/ledger/decision_totals/2026-01-01,refund-ceiling",
    "/ledger/facts%2F7",
    "/ledger/facts.json",
    "/ledger/facts.csv",
    "/ledger.json",
    "/-/static/app.css",
)
"""Addresses with something in them that another site chose, or that are no page."""

EVERYTHING = (
    "/",
    "/ledger",
    "/ledger/why",
    "/ledger.json?sql=select+1",
    "/ledger/decisions.csv",
    "/-/dashboards/governance",
    "/-/databases.json",
    "/-/static/app.css",
    "/-/static-plugins/datasette_dashboards/vega.min.js",
    "/footprint/dashboard.js",
    "/favicon.ico",
    "/nothing-there",
)

_NAMED = """
import socket, sys
found = socket.getaddrinfo
def getaddrinfo(host, *args, flags=0, **options):
    own = host == "ledger.example" and not flags & socket.AI_NUMERICHOST
    return found("127.0.0.1" if own else host, *args, flags=flags, **options)
socket.getaddrinfo = getaddrinfo
from footprint_observe.cli import main
main()
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(demonstrate(tmp_path_factory.mktemp("guard") / "l.db"))


@pytest.fixture(scope="module")
def open_(path: Path) -> Generator[Served]:
    with serving(path) as served:
        yield served


@pytest.fixture(scope="module")
def closed(path: Path) -> Generator[Served]:
    with serving(path, "--host", "0.0.0.0", lines=2) as served:
        yield served


def _token_of(served: Served) -> str:
    found = re.search(r"/-/sign-in\?token=(\S+)", served.said[1])
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_the_names_of_this_machine_are_answered(open_: Served, name: str) -> None:
    assert open_.get("/ledger", {"Host": f"{name}:{open_.port}"}).status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example:{}", "evil.example", "127.0.0.1", "localhost:1", "127.0.0.1:{}.evil.example", "", None],
)
def test_a_name_that_was_made_to_mean_this_machine_reads_nothing(open_: Served, host: str | None) -> None:
    named = None if host is None else host.format(open_.port)
    for page in EVERYTHING:
        answer = open_.get(page, {"Host": named})
        # Without a Host header the request is none, and the server itself says so.
        assert answer.status in ({403} if named is not None else {400, 403}), page
        assert b"decisions" not in answer.body


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_in_the_browser_can_neither_ask_nor_measure(open_: Served, site: str) -> None:
    asked = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    assert {open_.get(page, asked).status for page in EVERYTHING} == {403}
    framed = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    assert {open_.get(page, framed).status for page in (*READY, *CHOSEN)} == {403}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_may_link_to_a_ready_page_and_choose_nothing_in_it(open_: Served, site: str) -> None:
    followed = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert {page: open_.get(page, followed).status for page in READY} == dict.fromkeys(READY, 200)
    refused = {page: open_.get(page, followed) for page in CHOSEN}
    assert {page: answer.status for page, answer in refused.items()} == dict.fromkeys(CHOSEN, 403)
    assert b"press Enter" in refused[CHOSEN[0]].body
    typed = {**followed, "Sec-Fetch-Site": "none"}
    assert open_.get("/ledger/timeline?run_id=1", typed).status == 200


@pytest.mark.parametrize("name", ["Origin", "Referer"])
@pytest.mark.parametrize("page", ["https://evil.example/", "http://127.0.0.1:1/", "null", "http://["])
def test_a_browser_that_says_no_more_than_the_page_that_asks_is_believed(
    open_: Served, name: str, page: str
) -> None:
    assert open_.get("/ledger/facts?_where=1", {name: page}).status == 403
    assert open_.get("/ledger/facts?_where=1", {name: f"{open_.url}/ledger"}).status == 200


def test_the_site_itself_may_ask(open_: Served) -> None:
    asked = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
    assert open_.get("/ledger.json?sql=select+1", asked).status == 200


@pytest.mark.parametrize("page", EVERYTHING)
def test_no_page_opens_itself_to_other_sites(open_: Served, page: str) -> None:
    headers = open_.get(page, {"Origin": "https://evil.example", "Sec-Fetch-Site": "none"}).headers
    assert not [name for name in headers if name.startswith("access-control")]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "script-src-attr 'none'" in headers["content-security-policy"]
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_no_row_stays_in_the_cache_of_a_browser(open_: Served) -> None:
    for page in ("/", "/ledger/latest_denials", "/ledger.json?sql=select+1", "/ledger/decisions.csv"):
        assert open_.get(page).headers["cache-control"] == "private, no-store"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_only_reading_is_a_request(open_: Served, method: str) -> None:
    answer = open_.get("/ledger", method=method, body=b"sql=select+1")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("page", EVERYTHING)
def test_elsewhere_than_on_loopback_nothing_comes_without_the_token(closed: Served, page: str) -> None:
    for name, value in (
        ("X-Nothing", "1"),
        ("Authorization", "Bearer"),
        ("Authorization", "Bearer wrong"),
        ("Authorization", f"Basic {_token_of(closed)}"),
        ("Authorization", f"Bearer {_token_of(closed)}x"),
        ("Authorization", "Bearer \xfc"),
        ("Cookie", f"footprint-{closed.port}={_token_of(closed)}"),
        ("Cookie", f"footprint-{closed.port}="),
        ("Cookie", "=;=\x7f; footprint"),
        ("Cookie", 'prefs={"theme":"dark"}'),
    ):
        answer = closed.get(page, {name: value}, to="127.0.0.2")
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer"), (name, value)
        assert b"decisions" not in answer.body


def test_the_token_in_the_header_opens_every_page(closed: Served) -> None:
    shown = {"Authorization": f"Bearer {_token_of(closed)}", "Host": "ledger.example:80"}
    answers = [closed.get(page, shown, to="127.0.0.2").status for page in EVERYTHING]
    assert answers == [404 if page == "/nothing-there" else 200 for page in EVERYTHING]


def test_the_sign_in_link_sets_a_cookie_that_is_not_the_token(closed: Served) -> None:
    wrong = closed.get("/-/sign-in?token=wrong", to="127.0.0.2")
    assert (wrong.status, "set-cookie" in wrong.headers) == (401, False)
    signed = closed.get(f"/-/sign-in?token={_token_of(closed)}", to="127.0.0.2")
    # By a page of this site: a redirection from a link elsewhere does not bring the cookie along.
    assert (signed.status, signed.headers["location"]) == (303, "/-/sign-in")
    assert closed.get("/-/sign-in", to="127.0.0.2").headers["refresh"] == "0; url=/"
    cookie, *rules = signed.headers["set-cookie"].split("; ")
    assert rules == ["HttpOnly", "SameSite=Strict", "Path=/"]
    assert _token_of(closed) not in cookie
    for others in ("other=1; ", 'prefs={"theme":"dark"}; ', "=;;\x7f; ", ""):
        assert closed.get("/ledger", {"Cookie": f"{others}{cookie}"}, to="127.0.0.2").status == 200
        assert closed.get("/ledger", {"Cookie": f"{cookie}; {others}"}, to="127.0.0.2").status == 200
    assert closed.get("/ledger", {"Cookie": f"{cookie}x"}, to="127.0.0.2").status == 401


def test_a_token_that_is_given_is_asked_for_on_loopback_too_and_never_printed(
    path: Path, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="utf-8")
    shown = {"Authorization": f"Bearer {TOKEN}"}
    with serving(path, "--token-file", str(file), lines=2) as by_file:
        assert (by_file.get("/").status, by_file.get("/", shown).status) == (401, 200)
        assert TOKEN not in "".join(by_file.said)
    with serving(path, lines=2, FOOTPRINT_TOKEN=TOKEN) as by_name:
        assert (by_name.get("/").status, by_name.get("/", shown).status) == (401, 200)
        assert TOKEN not in "".join(by_name.said)


def test_every_start_makes_another_token(path: Path, closed: Served) -> None:
    with serving(path, "--host", "0.0.0.0", lines=2) as other:
        assert _token_of(other) != _token_of(closed)
        assert len(_token_of(other)) >= 40


@pytest.mark.parametrize("host", ["127.0.0.2", "127.3.2.1", "127.1", "localhost", "LocalHost"])
def test_what_the_host_was_called_is_a_name_of_it(path: Path, host: str) -> None:
    with serving(path, "--host", host) as served:
        address = served.address
        for name in (host, address, "localhost", "127.0.0.1"):
            answer = served.get("/ledger", {"Host": f"{name}:{served.port}"}, to=address)
            assert answer.status == 200, name
        assert served.get("/ledger", {"Host": f"evil.example:{served.port}"}, to=address).status == 403


def test_at_another_name_of_this_machine_a_token_is_needed(path: Path) -> None:
    # No browser says there which site asks.
    with serving(path, "--host", "ledger.example", lines=2, start=_NAMED) as served:
        named = {"Host": f"ledger.example:{served.port}"}
        assert served.get("/ledger", named).status == 401
        assert served.get("/ledger", {**named, "Authorization": f"Bearer {_token_of(served)}"}).status == 200
