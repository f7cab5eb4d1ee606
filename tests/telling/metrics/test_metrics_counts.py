"""What is counted while runs go on is what an independent question to their ledger finds."""

from __future__ import annotations

from pathlib import Path

import pytest

import seeded
from footprint_observe.query import pending
from telling.metrics.figures import Metered, counted

RUNS = 120


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Metered]:
    path = tmp_path_factory.mktemp("counts") / "l.db"
    metered = Metered(ledger=path)
    with pytest.MonkeyPatch.context() as patch:
        # A process that dies has told nobody of its last commit, and nobody hears of a run that is given up.
        told = tuple(story for story in seeded.STORIES if not story.dies and story.then is None)
        patch.setattr(seeded, "STORIES", told)
        seeded.seed(path, runs=RUNS, watchers=[metered.recorder])
    return path, metered


def test_decisions_are_those_of_the_ledger(seed: tuple[Path, Metered]) -> None:
    path, metered = seed
    assert metered.by(
        "footprint.decisions", "footprint.moment", "footprint.outcome", "footprint.middleware"
    ) == counted(
        path, "SELECT moment, outcome, middleware, count(*) FROM decisions WHERE NOT shadow GROUP BY 1, 2, 3"
    )


def test_decisions_belong_to_the_agent_of_their_run(seed: tuple[Path, Metered]) -> None:
    path, metered = seed
    assert metered.by("footprint.decisions", "gen_ai.agent.name") == counted(
        path,
        "SELECT json_extract(r.extra, '$.agent_name'), count(*) FROM decisions AS d JOIN facts AS r "
        "ON r.run_id = d.run_id AND r.position = 1 WHERE NOT d.shadow GROUP BY 1",
    )


def test_rule_errors_are_those_of_the_ledger(seed: tuple[Path, Metered]) -> None:
    path, metered = seed
    found = metered.by("footprint.middleware.errors", "footprint.moment", "footprint.middleware")
    assert len(found) >= 3
    assert found == counted(
        path,
        "SELECT moment, middleware, count(*) FROM decisions "
        "WHERE answer IN ('raised', 'timed-out', 'malformed') GROUP BY 1, 2",
    )


def test_every_decision_with_a_running_time_is_in_the_histogram_of_its_rule(
    seed: tuple[Path, Metered],
) -> None:
    path, metered = seed
    assert metered.by("footprint.middleware.duration", "footprint.moment", "footprint.middleware") == counted(
        path,
        "SELECT moment, middleware, count(*) FROM facts "
        "WHERE kind = 'decision' AND duration_us IS NOT NULL GROUP BY 1, 2",
    )


def test_runs_are_the_segments_that_ended(seed: tuple[Path, Metered]) -> None:
    path, metered = seed
    ended = "FROM facts WHERE kind = 'segment.ended'"
    assert metered.by("footprint.runs", "footprint.run.outcome") == counted(
        path, f"SELECT outcome, count(*) {ended} GROUP BY 1"
    )
    assert metered.by("footprint.run.duration", "footprint.run.outcome") == counted(
        path, f"SELECT outcome, count(*) {ended} GROUP BY 1"
    )
    (total,) = counted(path, f"SELECT sum(duration_us) {ended}").values()
    assert metered.sum("footprint.run.duration") == pytest.approx(total / 1_000_000)


def test_iterations_are_those_of_runs_that_are_over(seed: tuple[Path, Metered]) -> None:
    path, metered = seed
    over = "FROM facts WHERE kind = 'segment.ended' AND outcome <> 'paused'"
    assert metered.by("footprint.run.iterations") == counted(path, f"SELECT count(*) {over}")
    (total,) = counted(path, f"SELECT sum(json_extract(extra, '$.iterations')) {over}").values()
    assert metered.sum("footprint.run.iterations") == total


def test_tools_are_the_calls_that_ended_and_the_pauses(seed: tuple[Path, Metered]) -> None:
    path, metered = seed
    expected = counted(path, "SELECT status, count(*) FROM facts WHERE kind = 'call.answered' GROUP BY 1")
    (pauses,) = counted(path, "SELECT count(*) FROM pauses").values()
    found = metered.by("footprint.tools", "footprint.tool.status")
    assert found == {**expected, ("paused",): pauses}
    assert len(found) >= 7


def test_only_bodies_that_ran_are_timed(seed: tuple[Path, Metered]) -> None:
    path, metered = seed
    executed = "FROM facts WHERE kind = 'call.answered' AND status IN ('ran', 'failed')"
    assert metered.by("footprint.tool.duration", "gen_ai.tool.name") == counted(
        path, f"SELECT tool_name, count(*) {executed} GROUP BY 1"
    )


@pytest.mark.parametrize("kind", ["input", "output"])
def test_tokens_are_those_that_providers_told(seed: tuple[Path, Metered], kind: str) -> None:
    path, metered = seed
    usage = f"json_extract(extra, '$.usage.{kind}')"
    replies = "FROM facts WHERE kind = 'model.replied'"
    (known,) = counted(path, f"SELECT count({usage}) {replies}").values()
    (total,) = counted(path, f"SELECT sum({usage}) {replies}").values()
    (all_of_them,) = counted(path, f"SELECT count(*) {replies}").values()
    assert known < all_of_them
    assert metered.by("gen_ai.client.token.usage", "gen_ai.token.type")[kind,] == known
    assert metered.sum("gen_ai.client.token.usage", gen_ai_token_type=kind) == total


def test_model_calls_are_those_that_were_made_and_those_that_failed(seed: tuple[Path, Metered]) -> None:
    path, metered = seed
    # One that was cancelled took its time, and is no error.
    assert metered.by("gen_ai.client.operation.duration", "error.type") == counted(
        path,
        "SELECT nullif(error_class, 'CancelledError'), count(*) FROM facts "
        "WHERE kind IN ('model.replied', 'model.failed') GROUP BY 1",
    )


def test_first_words_are_timed_where_a_model_streams(seed: tuple[Path, Metered]) -> None:
    path, metered = seed
    assert metered.by("gen_ai.client.operation.time_to_first_chunk") == counted(
        path, "SELECT count(json_extract(extra, '$.first_chunk_us')) FROM facts WHERE kind = 'model.replied'"
    )


def test_redactions_are_those_marked_on_decisions(seed: tuple[Path, Metered]) -> None:
    path, metered = seed
    assert metered.by("footprint.redactions", "footprint.redaction.strategy") == counted(
        path,
        "SELECT json_extract(m.value, '$[1]'), count(*) FROM facts, json_each(redacted) AS m "
        "WHERE kind = 'decision' GROUP BY 1",
    )


def test_people_are_timed_by_what_they_answered(seed: tuple[Path, Metered]) -> None:
    path, metered = seed
    assert metered.by("footprint.approval.latency", "footprint.pause.answer") == counted(
        path, "SELECT answer, count(*) FROM facts WHERE kind = 'pause.answered' GROUP BY 1"
    )
    (total,) = counted(path, "SELECT sum(paused_us) FROM pauses").values()
    assert metered.sum("footprint.approval.latency") == pytest.approx(total / 1_000_000)


def test_the_questions_that_wait_are_those_that_pending_lists(seed: tuple[Path, Metered]) -> None:
    path, metered = seed
    waiting = [row for row in pending(path, limit=1000) if not row["expired"]]
    assert len(waiting) > 1
    assert metered.all("footprint.approvals.pending") == len(waiting)
    oldest = metered.all("footprint.approvals.oldest_age")
    assert oldest == pytest.approx(max(row["age_seconds"] for row in waiting), abs=30)
