"""What the README says of recorders: its watcher, its table, its pictures and its names."""

from __future__ import annotations

import asyncio
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from footprint_core import Agent, before_tool, deny
from footprint_core.providers import Scripted, call, reply
from footprint_observe.plugins import recorder, recorder_names
from footprint_observe.semconv import METRICS, NAMES, SPANS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTION = README[README.index("## See it") : README.index("## Try rules")]
BLOCKS = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)


def lookup(key: str) -> str:
    """Look something up."""
    return key


def test_the_watcher_of_the_readme_writes_a_line_for_a_denial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = Scripted([reply(calls=[call("c1", "lookup", {"key": "a"})]), reply(text="No.")])
    builder = Agent.create(provider=model, model="m", name="readme").tool(lookup)
    builder.act(before_tool=[before_tool("ceiling")(lambda _: deny("no"))])
    exec(compile(BLOCKS[1], "README.md", "exec"), {"builder": builder})

    async def once() -> Any:
        async with builder.build() as agent:
            return await agent.run("hi")

    run_id = asyncio.run(once()).run_id
    assert (tmp_path / "denials.txt").read_text() == f"{run_id} ceiling at before-tool\n"


def test_the_table_of_recorders_has_every_one_that_is_installed() -> None:
    named = set(re.findall(r"`(recorders\.\w+\.\w+)`", SECTION))
    assert {path.split(".")[1] for path in named} == set(recorder_names())
    for path in named:
        module, _, name = path.rpartition(".")
        assert recorder(module.split(".")[1]) is getattr(import_module(module), name)


def test_the_pictures_are_there() -> None:
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert len(pictures) == 2
    for picture in pictures:
        assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")


def test_every_name_is_one_of_the_table() -> None:
    known = {*NAMES.values(), *METRICS.values(), *SPANS}
    named = set(re.findall(r"`((?:footprint|gen_ai)\.[\w.]+|middleware\.\w+)`", SECTION))
    assert {"footprint.run.id", "footprint.recorder.dropped", "middleware.decision"} <= named
    assert {name for name in named if not name.startswith("footprint.recorders")} <= known
