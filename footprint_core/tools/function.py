"""A typed Python function as a tool. pydantic is loaded when the first one is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast, overload

from footprint_core import plain
from footprint_core.errors import BuilderError
from footprint_core.messages import TOOL_NAME
from footprint_core.outcomes import ToolArgs
from footprint_core.plain import Json
from footprint_core.tools.faithful import faithful, unrecordable
from footprint_core.tools.governed import governed
from footprint_core.tools.schema_tool import schema_tool
from footprint_core.tools.signature import parameters, type_hints
from footprint_core.tools.tool import Check, Checked, CheckIn, Evidence, Problem, Tool, ToolContext

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

"""What a model can call a tool."""


@overload
def tool(function: Callable[..., object], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    schema: Mapping[str, Json] | None = None,
    needs: str | None = None,
    check_in: CheckIn | None = None,
    evidence: Evidence | None = None,
    inline: bool = False,
    idempotent: bool = False,
) -> Callable[[Callable[..., object]], Tool]: ...
def tool(
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str | None = None,
    schema: Mapping[str, Json] | None = None,
    needs: str | None = None,
    check_in: CheckIn | None = None,
    evidence: Evidence | None = None,
    inline: bool = False,
    idempotent: bool = False,
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """Make a tool of a typed function; its docstring is what the model reads about it.

    A parameter annotated `ToolContext` is filled in and left out of the schema. What the function raises is
    answered with the exception's message: rules behind it are told that it failed, and the turn goes on.

    Args:
        function: The function, when used as a bare decorator.
        name: What the model calls it; the function's name by default.
        schema: A JSON Schema of an object, for a function that takes its arguments in one dict: they are
            checked by all of it, 2020-12 unless `$schema` says otherwise. Without it, the types decide.
        needs: The service the tool needs a credential for; it finds it in its context.
        check_in: `"always"`, or a function of the args that will run: a person has to consent when it is
            exactly True, or raises.
        evidence: A function of the args that will run; the person is shown what it gives.
        inline: Run a plain function on the event loop's thread, for bodies that return at once.
        idempotent: Running it twice with one idempotency key is harmless.

    Raises:
        BuilderError: The name, the schema or a parameter cannot be used.
    """

    def made(body: Callable[..., object]) -> Tool:
        plain_tool = _made(body, name=name, schema=schema, inline=inline, idempotent=idempotent)
        return governed(plain_tool, needs=needs, check_in=check_in, evidence=evidence)

    return made if function is None else made(function)


def _made(
    body: Callable[..., object],
    *,
    name: str | None,
    schema: Mapping[str, Json] | None,
    inline: bool,
    idempotent: bool,
) -> Tool:
    called: str = name if name is not None else str(getattr(body, "__name__", ""))
    if not TOOL_NAME.fullmatch(called):
        raise BuilderError(
            "A tool's name is 1 to 64 letters, digits, '_', '.' or '-'; give one with tool(name=...)."
        )
    if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
        raise BuilderError(f"The tool {called} is a generator, whose body would never run; return a list.")
    if schema is not None:
        return schema_tool(body, name=called, schema=schema, inline=inline, idempotent=idempotent)
    hints, defaults, context_parameter = _parameters(body, called)
    adapter = _adapter(called, hints, defaults)
    return Tool(
        name=called,
        description=inspect.cleandoc(body.__doc__ or ""),
        schema=_schema(adapter, defaults),
        keys=frozenset(hints),
        check=_check(adapter, defaults),
        body=body,
        is_async=inspect.iscoroutinefunction(body),
        inline=inline,
        context_parameter=context_parameter,
        idempotent=idempotent,
    )


def _parameters(
    body: Callable[..., object], called: str
) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """The types and defaults of the arguments, and the parameter that takes the context."""
    hints = type_hints(body, called)
    hints_of: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    context_parameter: str | None = None
    for parameter in parameters(body, called):
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
        hints_of[parameter.name] = hint
        if type(parameter.default).__name__ == "FieldInfo":
            raise BuilderError(
                f"The tool {called} gives a Field as the default of {parameter.name!r}, which would be "
                "ignored; write Annotated[type, Field(...)]."
            )
        if parameter.default is not parameter.empty:
            defaults[parameter.name] = parameter.default
    return hints_of, defaults, context_parameter


def _adapter(called: str, hints: dict[str, Any], defaults: dict[str, Any]) -> TypeAdapter[dict[str, Any]]:
    from typing import NotRequired

    from pydantic import ConfigDict, TypeAdapter
    from typing_extensions import TypedDict

    # A typed dict and no model: a parameter may be called what a model's own attributes are called, and
    # what is left out stays out, so that the function applies its own default.
    keys = {name: NotRequired[hint] if name in defaults else hint for name, hint in hints.items()}
    arguments: Any = cast("Any", TypedDict)(called, keys)
    arguments.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)
    try:
        adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(arguments)
    except Exception as error:
        raise BuilderError(
            f"The types of the tool {called} cannot become a schema ({type(error).__name__}); use JSON "
            "types, dataclasses or pydantic models."
        ) from error
    if (fault := unrecordable(adapter.core_schema)) is not None:
        raise BuilderError(f"The tool {called} takes {fault}.")
    for name, default in defaults.items():
        if recorded(adapter, {name: default}) is None:
            raise BuilderError(
                f"The tool {called} gives {name!r} a default that no row could show as it runs; use another."
            )
    return adapter


def recorded(adapter: TypeAdapter[dict[str, Any]], values: dict[str, Any]) -> dict[str, Any] | None:
    """What is put on record of checked values; None when it would not be what runs."""
    try:
        written, held = plain.examine(adapter.serializer.to_python(values, mode="json", warnings=False))
        return written if held and faithful(values, written) else None
    except Exception:  # noqa: BLE001 - a type of the tool's own may raise anything
        return None


def _schema(adapter: TypeAdapter[dict[str, Any]], defaults: dict[str, Any]) -> dict[str, Any]:
    schema = adapter.json_schema()
    schema.pop("title", None)
    schema.setdefault("properties", {})
    for name, default in defaults.items():
        if name in schema["properties"]:
            # Under an alias it has another name there.
            schema["properties"][name]["default"] = plain.detach(default)
    return schema


def _check(adapter: TypeAdapter[dict[str, Any]], defaults: dict[str, Any]) -> Check:
    from pydantic import ValidationError

    validate = adapter.validator.validate_python

    def check(args: ToolArgs) -> Checked | tuple[Problem, ...]:
        try:
            kwargs: dict[str, Any] = validate(args)
        except ValidationError as error:
            return tuple(map(_problem, error.errors(include_url=False, include_context=False)))
        except Exception:  # noqa: BLE001 - a validator of the tool's own types may raise anything
            return (Problem(path="(arguments)", expected="what the tool's types accept", came="object"),)
        # Looked at in each call: a default can be changed by the calls before it.
        left_out = {n: default for n, default in defaults.items() if n not in kwargs} if defaults else {}
        if plain.is_flat(kwargs) and plain.is_flat(left_out):
            return Checked(kwargs=kwargs, args={**left_out, **kwargs})
        # What cannot be on record must not run: a NaN, say, deep in a model.
        ran = recorded(adapter, {**left_out, **kwargs})
        if ran is None:
            return (Problem(path="(arguments)", expected="values recorded as they run", came="object"),)
        return Checked(kwargs=kwargs, args=ran)

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
