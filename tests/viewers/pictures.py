"""Looks at a served ledger through Chromium: what its pages show is held against the rows of the file.

Run it as a program to take the pictures of dashboards/pictures: `python tests/viewers/pictures.py --write`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).parents[1]))

from browsed import PANELS, QUERIES, Served, seeded_file, serving
from browsed_rows import Counted
from viewers.chromium import Page, chromium

FOLDER = Path(__file__).parents[2] / "dashboards" / "pictures"
MOST_BYTES = 250_000
_WIDTH = 1360
# Vega writes what a mark stands for beside it, for those who cannot see it.
_MARKS = "#panel-{} .mark-rect path[aria-label]"
_SUMS = {"by_day": "decisions", "runs": "runs", "denials_by_rule": "denials", "answers": "questions"} | {
    "tools": "calls",
    "redactions": "values",
}


def see_dashboard(page: Page, served: Served, counted: Counted) -> None:
    """Go to the dashboard and see that it shows what is in the file."""
    page.open(f"{served.url}/-/dashboards/governance")
    page.wait("document.body.dataset.drawn")
    assert page.texts(".panel h2") == [panel["title"] for panel in PANELS.values()]
    assert page.texts(".failed, .none") == []
    _see_figures(page, counted)
    _see_charts(page, counted)
    denials = [" ".join(map(str, filter(None, row[:3]))) for row in counted.denials()[:8]]
    shown = [" ".join(_cells(page, "latest_denials", row)[1:4]) for row in range(1, 9)]
    assert [" ".join(one.split()) for one in shown] == [" ".join(one.split()) for one in denials]
    assert [_cells(page, "questions", row)[1] for row in range(1, 9)] == [
        kind for kind, *_ in counted.open_questions()[:8]
    ]
    _see_nothing_foreign(page, served)


def _see_figures(page: Page, counted: Counted) -> None:
    n = len(counted.decisions())
    refused = 100 * (n - len(counted.decisions("allow"))) / n
    expected = [f"{n:,}", f"{refused:.1f} %", str(len(counted.open_questions())), str(len(counted.endless()))]
    assert page.texts(".panel.metric .drawn") == expected


def _see_charts(page: Page, counted: Counted) -> None:
    drawn = {name for name, panel in PANELS.items() if panel["library"] == "vega-lite"}
    assert drawn == _SUMS.keys()
    total = {
        "by_day": len(counted.decisions()),
        "runs": len(counted.runs),
        "denials_by_rule": len(counted.decisions("deny")),
        "answers": len(counted.questions()),
        "tools": len(counted.of("call.answered")),
        "redactions": sum(n for *_, n in counted.redactions()),
    }
    assert {name: sum(_marks(page, name).values()) for name in drawn} == total
    assert _marks(page, "runs") == Counter(end[2] for end in counted.ends())
    assert _marks(page, "answers", "answer") == _summed(counted.answers())


def _marks(page: Page, panel: str, by: str = "outcome") -> Counter[str]:
    """What the bars of a chart stand for."""
    script = "return [...document.querySelectorAll(arguments[0])].map(e => e.getAttribute('aria-label'))"
    found: Counter[str] = Counter()
    for label in page.run(script, _MARKS.format(panel)):
        says = dict(part.split(": ", 1) for part in label.split("; "))
        found[says.get(by, "")] += int(says[_SUMS[panel]])
    return found


def _summed(rows: list[tuple[str, str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for _, answer, n in rows:
        found[answer] += n
    return found


def _cells(page: Page, panel: str, row: int) -> list[str]:
    return page.texts(f"#panel-{panel} tbody tr:nth-child({row}) td")


def see_queries(page: Page, served: Served) -> None:
    """Go to the page of every named query and see its rows."""
    for name, query in QUERIES.items():
        page.open(f"{served.url}/ledger/{name}")
        assert page.texts("h1") == [query["title"]]
        assert page.texts(".message-error") == []
        rows = len(served.rows(f"/ledger/{name}"))
        assert (
            page.run("return document.querySelectorAll('.rows-and-columns tbody tr').length") == rows > 0
        ), name
        _see_nothing_foreign(page, served)


def _see_nothing_foreign(page: Page, served: Served) -> None:
    asked = page.run("return performance.getEntriesByType('resource').map(one => one.name)")
    assert asked
    assert [url for url in asked if not url.startswith(f"{served.url}/")] == []
    assert page.complaints() == []


def pictures(page: Page, served: Served, counted: Counted) -> Iterator[tuple[str, bytes]]:
    """The pictures, each taken of a page that was looked at before."""
    see_dashboard(page, served, counted)
    yield "governance.png", page.picture(width=_WIDTH)
    page.open(f"{served.url}/ledger/why?{_approved_call(counted)}")
    assert page.texts(".rows-and-columns tbody tr")
    yield "why.png", page.picture(width=_WIDTH)


def _approved_call(counted: Counted) -> str:
    """The newest call that a rule asked a person about, who approved it."""
    approved = (fact for fact in counted.of("pause.answered") if fact["answer"] == "approved")
    call = next(fact for fact in approved if fact["extra"]["pause_kind"] == "ask")
    return urlencode({name: call[name] for name in ("run_id", "tool_call_id")})


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write them into dashboards/pictures")
    write = parser.parse_args().write
    with TemporaryDirectory() as folder:
        path = seeded_file(Path(folder))
        with serving(path) as served, chromium() as page:
            for name, png in pictures(page, served, Counted(path)):
                assert len(png) < MOST_BYTES, (name, len(png))
                print(name, len(png), "bytes")
                if write:
                    FOLDER.mkdir(exist_ok=True)
                    (FOLDER / name).write_bytes(png)


if __name__ == "__main__":
    main()
