"""What is asked with something that cannot be asked with is refused in one sentence, not with a TypeError."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commanded import demonstrate
from footprint_core.errors import LedgerOpenError
from footprint_observe import SqliteLedger, query, verify
from footprint_observe.query import QuestionError


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return demonstrate(tmp_path_factory.mktemp("l") / "l.db")


ASKED: tuple[Callable[..., Any], ...] = (
    query.runs,
    query.decisions,
    query.pending,
    query.totals,
    query.timeline,
    query.calls,
    query.run,
    verify,
)


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize("path", [None, 5, b"l.db", ["l.db"]])
def test_a_path_that_is_none_is_refused(ask: Callable[..., Any], path: Any) -> None:
    with pytest.raises(
        LedgerOpenError, match=r"^The path of a ledger is a text or a pathlib\.Path; give one\.$"
    ):
        ask(path)


@pytest.mark.parametrize("limit", ["x", 0, -1, True, 1.5, [3]])
def test_a_limit_that_is_none_is_refused(path: str, limit: Any) -> None:
    asked: tuple[Callable[[], object], ...] = (
        lambda: query.runs(path, limit=limit),
        lambda: query.decisions(path, limit=limit),
        lambda: query.pending(path, limit=limit),
        lambda: list(query.find(path, "x", limit=limit)),
    )
    for ask in asked:
        with pytest.raises(QuestionError, match=r"^The limit is a whole number, 1 or more"):
            ask()


@pytest.mark.parametrize("when", [3, b"today", 1.5, ["today"]])
def test_a_time_that_is_none_is_refused(path: str, when: Any) -> None:
    for name in ("since", "until"):
        for ask in (query.decisions, query.runs, query.totals, query.pending):
            with pytest.raises(QuestionError, match=r"^That is no time"):
                ask(path, **{name: when})


@pytest.mark.parametrize("name", [5, b"last", ["last"], {}])
def test_a_run_that_is_no_text_is_refused(path: str, name: Any) -> None:
    for ask in (query.run, query.timeline, query.calls, query.replay):
        with pytest.raises(QuestionError, match=r"^The name of a run is a text"):
            ask(path, name)


def test_other_arguments_that_are_none_are_refused(path: str) -> None:
    wrong: Any = 5
    many: Any = [[]]
    asked: tuple[Callable[[], object], ...] = (
        lambda: query.why(path, wrong),
        lambda: query.why(path, many),
        lambda: query.sql(path, wrong),
        lambda: query.sql(path, "select 1", wrong),
        lambda: query.totals(path, by=wrong),
        lambda: query.totals(path, by=many),
        lambda: query.pending(path, rule=wrong),
        lambda: query.follow(path, after_id=many),
    )
    for ask in asked:
        with pytest.raises(QuestionError):
            ask()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": 5}, "The path of a ledger is"),
        ({"path": None}, "The path of a ledger is"),
        ({"path": b"x.db"}, "The path of a ledger is"),
        ({"durability": ["power"]}, "The durability of a ledger is"),
        ({"busy_timeout": "3"}, "busy_timeout is a number of seconds"),
        ({"busy_timeout": None}, "busy_timeout is a number of seconds"),
        ({"busy_timeout": float("nan")}, "busy_timeout is a number of seconds"),
    ],
)
def test_a_ledger_is_not_opened_with_it(tmp_path: Path, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(LedgerOpenError, match=f"^{said}"):
        SqliteLedger(**{"path": tmp_path / "l.db", **arguments})
    assert list(tmp_path.iterdir()) == []


def test_a_parameter_the_query_does_not_have_is_refused(path: str) -> None:
    with pytest.raises(QuestionError, match=r"^The query has no parameter :b; give only those it has\.$"):
        query.sql(path, "select :a as a", {"a": "1", "b": "2"})
    with pytest.raises(QuestionError, match="no parameter :a"):
        query.sql(path, "select 1 as a", {"a": "1"})
    assert query.sql(path, "select :a as a, :a || :b as b", {"a": "1", "b": "2"}) == [{"a": "1", "b": "12"}]
