"""A function that takes its arguments in one dict, checked by a JSON Schema, as a tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import cast

from footprint_core import plain
from footprint_core.errors import BuilderError
from footprint_core.outcomes import ToolArgs
from footprint_core.plain import Json
from footprint_core.tools.json_schema import validator
from footprint_core.tools.signature import parameters, type_hints
from footprint_core.tools.tool import Body, Check, Checked, Problem, Tool, ToolContext


def schema_tool(
    body: Callable[..., object], *, name: str, schema: object, inline: bool, idempotent: bool
) -> Tool:
    """A tool of a function whose one parameter takes the dict; one more may be annotated `ToolContext`.

    Raises:
        BuilderError: The schema or a parameter cannot be used.
    """
    args_parameter, context_parameter = _parameters(body, name)
    return tool_of_schema(
        body,
        name=name,
        of=f"the tool {name}",
        description=inspect.cleandoc(body.__doc__ or ""),
        schema=schema,
        is_async=inspect.iscoroutinefunction(body),
        inline=inline,
        idempotent=idempotent,
        args_parameter=args_parameter,
        context_parameter=context_parameter,
    )


def tool_of_schema(
    body: Body,
    *,
    name: str,
    of: str,
    description: str,
    schema: object,
    is_async: bool,
    inline: bool = False,
    idempotent: bool = False,
    args_parameter: str = "args",
    context_parameter: str | None = None,
) -> Tool:
    """A tool of a body and the schema of its arguments.

    Args:
        body: What runs; `args_parameter` gets the arguments as one dict of its own.
        name: What the model calls it.
        of: Whose schema it is, for the text of an error.
        description: What the model reads about it.
        schema: Its JSON Schema, which is one of an object; `type` may be left out.
        is_async: Whether the body is a coroutine function.
        inline: Whether a plain body may run on the event loop's own thread.
        idempotent: Whether running it twice with one idempotency key is harmless.
        args_parameter: The body's parameter for the arguments.
        context_parameter: The body's parameter for the `ToolContext`, or None.

    Raises:
        BuilderError: The schema cannot be used.
    """
    looked_at = _object_schema(schema, of)
    return Tool(
        name=name,
        description=description,
        schema=looked_at,
        keys=frozenset(looked_at.get("properties", ())),
        check=_check(looked_at, of, args_parameter),
        body=body,
        is_async=is_async,
        inline=inline,
        context_parameter=context_parameter,
        idempotent=idempotent,
    )


def _parameters(body: Callable[..., object], called: str) -> tuple[str, str | None]:
    """The parameter that takes the arguments, and the one that takes the context."""
    hints = type_hints(body, called)
    given: list[str] = []
    context_parameter: str | None = None
    for parameter in parameters(body, called):
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise BuilderError(
                f"The tool {called} has the parameter {parameter.name!r}, which is not called by name; give "
                "it one plain parameter for the dict of arguments."
            )
        if hints.get(parameter.name) is ToolContext:
            context_parameter = parameter.name
        else:
            given.append(parameter.name)
    if len(given) != 1:
        raise BuilderError(
            f"The tool {called} has a schema, so it takes its arguments in one dict; give it one parameter "
            f"beside the ToolContext, not {len(given)}."
        )
    return given[0], context_parameter


def _object_schema(schema: object, of: str) -> Mapping[str, Json]:
    detached, held = plain.examine(schema)
    if not held or not plain.is_object(detached):
        raise BuilderError(f"The schema of {of} is a dict of JSON values; give it one.")
    if detached.setdefault("type", "object") != "object":
        raise BuilderError(f"The schema of {of} is one of an object; give it the type 'object'.")
    return cast("Mapping[str, Json]", detached)


def _check(schema: Mapping[str, Json], of: str, args_parameter: str) -> Check:
    validate = validator(schema, of)

    def check(args: ToolArgs) -> Checked | tuple[Problem, ...]:
        # The body gets a copy: what it changes must not be what is on record.
        return validate(args) or Checked(kwargs={args_parameter: plain.copy(args)}, args=args)

    return check
