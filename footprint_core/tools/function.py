"""A typed Python function as a tool. pydantic is loaded when the first one is made."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from footprint_core import plain
from footprint_core.errors import BuilderError
from footprint_core.outcomes import ToolArgs
from footprint_core.tools.tool import Check, Checked, Problem, Tool, ToolContext

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


@overload
def tool(function: Callable[..., object], /) -> Tool: ...
@overload
def tool(
    *, name: str | None = None, inline: bool = False, idempotent: bool = False
) -> Callable[[Callable[..., object]], Tool]: ...
def tool(
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str | None = None,
    inline: bool = False,
    idempotent: bool = False,
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """Make a tool of a typed function; its docstring is what the model reads about it.

    A parameter annotated `ToolContext` is filled in and left out of the schema.

    Args:
        function: The function, when used as a bare decorator.
        name: What the model calls it; the function's name by default.
        inline: Run a plain function on the event loop's thread, for bodies that return at once.
        idempotent: Running it twice with one idempotency key is harmless.

    Raises:
        BuilderError: The name or a parameter cannot be used.
    """

    def made(body: Callable[..., object]) -> Tool:
        return _made(body, name=name, inline=inline, idempotent=idempotent)

    return made if function is None else made(function)


def _made(body: Callable[..., object], *, name: str | None, inline: bool, idempotent: bool) -> Tool:
    called: str = name if name is not None else str(getattr(body, "__name__", ""))
    if not _NAME.fullmatch(called):
        raise BuilderError(
            "A tool's name is 1 to 64 letters, digits, '_', '.' or '-'; give one with tool(name=...)."
        )
    fields, context_parameter = _parameters(body, called)
    model = _model(called, fields)
    schema: dict[str, Any] = model.model_json_schema()
    schema.pop("title", None)
    return Tool(
        name=called,
        description=inspect.cleandoc(body.__doc__ or ""),
        schema=schema,
        keys=frozenset(fields),
        check=_check(model),
        body=body,
        is_async=inspect.iscoroutinefunction(body),
        inline=inline,
        context_parameter=context_parameter,
        idempotent=idempotent,
    )


def _parameters(body: Callable[..., object], called: str) -> tuple[dict[str, Any], str | None]:
    """The fields of the arguments model, and the parameter that takes the context."""
    try:
        hints = typing.get_type_hints(body, include_extras=True)
    except NameError as error:
        raise BuilderError(
            f"The tool {called} is annotated with {error.name!r}, which is not found; import it at run time."
        ) from None
    fields: dict[str, Any] = {}
    context_parameter: str | None = None
    for parameter in inspect.signature(body).parameters.values():
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise BuilderError(
                f"The tool {called} has the parameter {parameter.name!r}, which no model can fill; name each."
            )
        hint = hints.get(parameter.name, inspect.Parameter.empty)
        if hint is ToolContext:
            context_parameter = parameter.name
            continue
        if hint is inspect.Parameter.empty:
            raise BuilderError(
                f"The tool {called} has no type for its parameter {parameter.name!r}; annotate it."
            )
        fields[parameter.name] = (hint, ... if parameter.default is parameter.empty else parameter.default)
    return fields, context_parameter


def _model(called: str, fields: dict[str, Any]) -> type[BaseModel]:
    from pydantic import ConfigDict, Field, create_model

    # Under an alias, so that a parameter may be called what pydantic's own attributes are called.
    aliased: dict[str, Any] = {
        f"field_{index}": (hint, Field(alias=name) if default is ... else Field(default=default, alias=name))
        for index, (name, (hint, default)) in enumerate(fields.items())
    }
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    try:
        return create_model(called, __config__=config, **aliased)
    except Exception as error:
        raise BuilderError(
            f"The types of the tool {called} cannot become a schema ({type(error).__name__}); use JSON "
            "types, dataclasses or pydantic models."
        ) from error


def _check(model: type[BaseModel]) -> Check:
    from pydantic import ValidationError

    names = {field: str(info.alias) for field, info in model.model_fields.items()}
    validate = model.__pydantic_validator__.validate_python
    dump = model.__pydantic_serializer__.to_python

    def check(args: ToolArgs) -> Checked | tuple[Problem, ...]:
        try:
            checked = validate(args)
        except ValidationError as error:
            return tuple(map(_problem, error.errors(include_url=False, include_context=True)))
        kwargs = {names[field]: value for field, value in checked.__dict__.items()}
        if plain.is_flat(kwargs):
            return Checked(kwargs=kwargs, args=dict(kwargs))
        return Checked(kwargs=kwargs, args=plain.detach(dump(checked, mode="json", by_alias=True)))

    return check


def _problem(error: ErrorDetails) -> Problem:
    path = ".".join(str(part) for part in error["loc"]) or "(arguments)"
    kind = error["type"]
    if kind == "missing":
        return Problem(path=path, expected="a value", came="nothing")
    if kind == "extra_forbidden":
        return Problem(path=path, expected="no such argument", came=plain.json_type(error["input"]))
    return Problem(
        path=path, expected=_EXPECTED.get(kind, kind.replace("_", " ")), came=plain.json_type(error["input"])
    )


_EXPECTED = {
    "int_type": "integer",
    "int_parsing": "integer",
    "int_from_float": "integer",
    "float_type": "number",
    "float_parsing": "number",
    "string_type": "string",
    "bool_type": "boolean",
    "bool_parsing": "boolean",
    "list_type": "array",
    "dict_type": "object",
    "model_type": "object",
    "literal_error": "one of the listed values",
    "enum": "one of the listed values",
    "value_error": "a value its type accepts",
    "assertion_error": "a value its type accepts",
}
