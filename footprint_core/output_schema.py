"""The shape an answer must have: declared on the agent, judged behind the output rules."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import msgspec

from footprint_core import plain
from footprint_core.errors import BuilderError
from footprint_core.facts import SchemaStage
from footprint_core.pause.signal import PauseSignal
from footprint_core.plain import Json
from footprint_core.threads import drop

if TYPE_CHECKING:
    from pydantic import ValidationError


@runtime_checkable
class OutputSchema(Protocol):
    """Judges an answer."""

    @property
    def instruction(self) -> str:
        """What the model is told about the shape, behind the system prompt; may be empty."""
        ...

    def check(self, value: Json, /) -> object:
        """The answer as the caller gets it, from the JSON the model wrote.

        Raises:
            ValueError: It does not match; the text goes back to the model, and into the ledger.
        """
        ...


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A declared schema.

    Attributes:
        schema: What judges.
        instruction: What the model is told, read once.
        retries: How often a mismatch is asked about again in one turn.
    """

    schema: OutputSchema
    instruction: str
    retries: int


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """How an answer came out.

    Attributes:
        value: The answer as the caller gets it; None when it does not match.
        stage: Where it failed, or None.
        error: The validator's text, or None.
    """

    value: object = None
    stage: SchemaStage | None = None
    error: str | None = None


def judge_answer(schema: OutputSchema, text: str) -> Judged:
    """Judge an answer: it is parsed as JSON, then checked. Whatever a check raises is a mismatch."""
    try:
        data = plain.decode(text)
    except ValueError:
        return Judged(stage="json-parse", error="The answer is not one JSON document.")
    try:
        value = schema.check(data)
        if not inspect.isawaitable(value):
            return Judged(value=value)
        # Nobody awaits it, and what it would raise would pass for a match.
        drop(value)
        return Judged(stage="schema-validate", error="The check of the schema is async, and is not awaited.")
    except (Exception, PauseSignal) as error:  # noqa: BLE001 - a check of another make may raise anything
        return Judged(stage="schema-validate", error=plain.message_of(error))


def shape_of(schema: object, retries: int) -> Shape:
    """A declared schema that was looked at.

    Args:
        schema: An `OutputSchema`, a JSON Schema as a dict, or a type pydantic reads.
        retries: A whole number of at least 0.

    Raises:
        BuilderError: One of them cannot be used.
    """
    if type(retries) is not int or retries < 0:
        raise BuilderError("output_schema(retries=...) counts attempts; give a whole number of at least 0.")
    made = schema if isinstance(schema, OutputSchema) and not isinstance(schema, type) else _made(schema)
    instruction = cast("object", made.instruction)
    if not isinstance(instruction, str) or not callable(made.check):
        raise BuilderError("An output schema has an instruction, which is a text, and a check(value) method.")
    if inspect.iscoroutinefunction(made.check):
        raise BuilderError("The check of an output schema is async, and nobody awaits it; make it plain.")
    return Shape(schema=made, instruction=plain.detach(instruction), retries=retries)


def _made(schema: object) -> OutputSchema:
    if isinstance(schema, Mapping):
        return _JsonSchema(dict(schema))  # pyright: ignore[reportUnknownArgumentType]
    if inspect.isroutine(schema):
        # pydantic would read it as the type of its arguments, and call it with the answer.
        raise BuilderError("output_schema() takes no function; give an object with instruction and check().")
    return _Typed(schema)


_TOLD = "Answer with one JSON document and nothing else. It must match this JSON Schema: "


class _Typed:
    """A type, judged by pydantic."""

    def __init__(self, kind: Any) -> None:
        from pydantic import TypeAdapter

        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(kind)
            self.instruction = _TOLD + plain.rendered(self._adapter.json_schema())
        except Exception as error:
            raise BuilderError(
                f"output_schema() cannot make a schema of that ({type(error).__name__}); give a pydantic "
                "model, a typed dict, a dataclass or a JSON Schema."
            ) from error

    def check(self, value: Json, /) -> object:
        from pydantic import ValidationError

        try:
            return self._adapter.validate_json(plain.encode(value))
        except ValidationError as error:
            wrong = _said(error)
        raise ValueError(wrong)


def _said(error: ValidationError) -> str:
    parts = (
        f"{'.'.join(map(str, one['loc'])) or '(answer)'}: {one['msg']}"
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    )
    return "; ".join(parts)


class _JsonSchema:
    """A JSON Schema, 2020-12 when it does not say."""

    def __init__(self, schema: dict[str, Any]) -> None:
        from footprint_core.tools.json_schema import validator

        self._validate = validator(schema, "output_schema()", top="(answer)")
        self.instruction = _TOLD + plain.rendered(schema)

    def check(self, value: Json, /) -> object:
        problems = self._validate(value)
        if problems:
            raise ValueError("; ".join(f"{p.path}: expected {p.expected}, got {p.came}" for p in problems))
        return value
