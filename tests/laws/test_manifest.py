"""The manifest names every law and tests that exist, and every test of a law stands in it."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from laws.book import GROUPS, HERE, ROOT, ids, manifest, mutants

LATER = {
    "agent.stream": {"STREAM-01", "STREAM-02", "STREAM-03", "STREAM-06", "STREAM-07"},
}
"""The only laws that may belong to later work."""


@cache
def functions(path: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse((ROOT / path).read_text())
    return {
        node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_the_manifest_names_every_law_once_and_no_other() -> None:
    assert sorted(manifest()) == sorted(ids())
    assert sum(GROUPS.values()) == 339


@pytest.mark.parametrize("law", ids())
def test_a_law_has_tests_that_exist_or_belongs_to_later_work(law: str) -> None:
    entry = manifest()[law]
    if entry.later is not None:
        assert not entry.tests
        assert law in LATER[entry.later]
        return
    assert entry.tests
    for test in entry.tests:
        path, _, name = test.partition("::")
        assert name.startswith("test_"), test
        assert name in functions(path), test


def test_every_test_in_this_folder_is_named_by_a_law() -> None:
    named = {test for law in manifest().values() for test in law.tests}
    unnamed = [
        f"{path.relative_to(ROOT)}::{name}"
        for path in sorted(HERE.glob("test_*.py"))
        if path.name not in {"test_manifest.py", "test_mutate.py"}
        for name in functions(str(path.relative_to(ROOT)))
        if name.startswith("test_") and f"{path.relative_to(ROOT)}::{name}" not in named
    ]
    assert not unnamed


def test_a_law_is_pinned_by_more_than_its_name() -> None:
    for law, entry in manifest().items():
        for test in entry.tests:
            path, _, name = test.partition("::")
            body = ast.dump(functions(path)[name])
            assert "Assert(" in body or "raises" in body or "Call(" in body, f"{law}: {test}"


def test_sixty_laws_and_more_have_a_mutant_that_fits_the_source() -> None:
    found = mutants()
    assert len({mutant.law for mutant in found}) >= 60
    for mutant in found:
        assert mutant.law in manifest()
        assert mutant.old != mutant.new
        assert "\n" not in mutant.old.strip("\n")
        source = (ROOT / mutant.file).read_text()
        assert source.count(mutant.old) == 1, f"{mutant.law} in {mutant.file}: {mutant.old!r}"
        assert set(mutant.tests) & set(manifest()[mutant.law].tests), mutant.law
