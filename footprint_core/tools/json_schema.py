"""A JSON Schema, looked at once, that then says what is wrong with a value. jsonschema is loaded by then.

What the library says about a value is never shown: its messages quote the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from footprint_core import plain
from footprint_core.errors import BuilderError
from footprint_core.plain import Json
from footprint_core.tools.tool import Problem

Validate: TypeAlias = Callable[[Json], tuple[Problem, ...]]
"""Everything that is wrong with a plain value, in the order of the paths; nothing when it matches."""


def validator(schema: Mapping[str, Json], of: str, *, top: str = "(arguments)") -> Validate:
    """Look at a schema and make it judge values.

    The dialect is 2020-12 unless `$schema` names another that is known. Formats are not asserted, defaults
    are not filled in, and nothing is ever fetched.

    Args:
        schema: The schema, as plain JSON.
        of: Whose it is, for the text of an error.
        top: What a problem calls the value itself.

    Raises:
        BuilderError: It is no schema of its dialect, or refers to something that is not in it.
    """
    from referencing.jsonschema import EMPTY_REGISTRY

    dialect = _dialect(schema, of)
    _refuse_malformed(dialect, schema, of)
    _refuse_lost_references(dialect, schema, of)
    # A registry of its own: the library's default one would fetch what it does not know.
    judge = dialect(schema, registry=EMPTY_REGISTRY)

    def validate(value: Json) -> tuple[Problem, ...]:
        try:
            found = {
                problem for error in judge.iter_errors(value) for problem in _problems(error, value, top)
            }
        except Exception:  # noqa: BLE001 - a schema can lead to itself for ever, and a library can fail
            return (Problem(path=top, expected="what its schema allows", came=plain.json_type(value)),)
        return tuple(sorted(found, key=lambda problem: (problem.path, problem.expected)))

    return validate


def _dialect(schema: Mapping[str, Json], of: str) -> Any:
    from jsonschema import validators  # type: ignore[import-untyped]

    named = schema.get("$schema")
    if named is None:
        return validators.Draft202012Validator
    found: Any = None
    if isinstance(named, str):
        found = validators.validator_for(schema, default=cast("Any", None))
    if found is None:
        raise BuilderError(
            f"The schema of {of} names a dialect in $schema that is not known; leave it out for 2020-12."
        )
    return found


def _refuse_malformed(dialect: Any, schema: Mapping[str, Json], of: str) -> None:
    from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]

    try:
        dialect.check_schema(schema)
    except SchemaError as error:
        path = ".".join(str(part) for part in error.absolute_path) or "its top"
    except Exception:  # noqa: BLE001 - a pattern, say, can break the library in its own way
        path = "some place"
    else:
        return
    raise BuilderError(f"The schema of {of} is no JSON Schema at {path}; correct it.")


_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def _refuse_lost_references(dialect: Any, schema: Mapping[str, Json], of: str) -> None:
    """Follow every reference once, so that none is found to lead nowhere in the middle of a call."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
    from referencing.jsonschema import specification_with

    specification = specification_with(dialect.ID_OF(dialect.META_SCHEMA))
    root = specification.create_resource(schema)
    pending: list[tuple[Any, Any]] = [(root, REGISTRY.resolver_with_root(root))]
    seen: set[int] = set()
    try:
        while pending:
            resource, resolver = pending.pop()
            if id(resource.contents) in seen or not plain.is_object(resource.contents):
                continue
            seen.add(id(resource.contents))
            for keyword in _REFERENCES:
                if isinstance(reference := resource.contents.get(keyword), str):
                    found = resolver.lookup(reference)
                    pending.append((specification.create_resource(found.contents), found.resolver))
            pending.extend((part, resolver.in_subresource(part)) for part in resource.subresources())
    except Exception:  # noqa: BLE001 - the library has an error for each way of leading nowhere
        raise BuilderError(
            f"The schema of {of} refers to something that is not in it, and nothing is fetched; put it "
            "under $defs."
        ) from None


def _problems(error: Any, value: Json, top: str) -> Iterator[Problem]:
    """What is wrong, in words of the schema's keyword. An error can stand for several missing names."""
    path = tuple(error.absolute_path)
    if error.validator == "required":
        # A list of names; in the oldest dialect, a word of the missing property itself.
        listed = error.validator_value if plain.is_array(error.validator_value) else None
        missing = [()] if listed is None else [(name,) for name in listed if name not in error.instance]
        for rest in missing:
            yield Problem(path=_dotted((*path, *rest), top), expected="a value", came="nothing")
        return
    place = _at(value, path)
    if place is not error.instance:
        # Said about a name, or by a schema that is just `false`, where the library forgets the last step.
        nothing = error.validator is None
        expected = "nothing where its schema says so" if nothing else "property names its schema allows"
        yield Problem(path=_dotted(path, top), expected=expected, came=plain.json_type(place))
    elif error.validator == "additionalProperties":
        for name in _extra(error.schema, place):
            came = plain.json_type(place[name])
            yield Problem(path=_dotted((*path, name), top), expected="no such argument", came=came)
    else:
        yield Problem(path=_dotted(path, top), expected=_expected(error), came=plain.json_type(place))


def _at(value: Json, path: Iterable[str | int]) -> Json:
    for part in path:
        value = value[part]
    return value


def _dotted(path: Iterable[str | int], top: str) -> str:
    return ".".join(str(part) for part in path) or top


def _extra(schema: Mapping[str, Json], place: Mapping[str, Json]) -> Iterator[str]:
    listed = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    for name in place:
        if name not in listed and not any(re.search(pattern, name) for pattern in patterns):
            yield name


def _expected(error: Any) -> str:
    keyword = error.validator
    if keyword == "type":
        return _types(error.validator_value) or _OTHERWISE
    if keyword in {"anyOf", "oneOf"}:
        if not error.context:
            return "only one of the listed shapes"
        here = [one for one in error.context if not one.path]
        # A choice between plain types is told by their names; a choice between shapes is not.
        if len(here) == len(error.context) and all(one.validator == "type" for one in here):
            return " or ".join(dict.fromkeys(_types(one.validator_value) for one in here))
        return "one of the listed shapes"
    return _EXPECTED.get(keyword, _OTHERWISE)


def _types(listed: Json) -> str:
    names = listed if plain.is_array(listed) else [listed]
    return " or ".join(name for name in names if isinstance(name, str))


_OTHERWISE = "what its schema allows"

_EXPECTED = {
    "enum": "one of the listed values",
    "const": "the listed value",
    "minimum": "a larger number",
    "exclusiveMinimum": "a larger number",
    "maximum": "a smaller number",
    "exclusiveMaximum": "a smaller number",
    "multipleOf": "a multiple of the listed number",
    "minLength": "a longer text",
    "maxLength": "a shorter text",
    "pattern": "a text of the listed pattern",
    "minItems": "more items",
    "maxItems": "fewer items",
    "items": "fewer items",
    "uniqueItems": "items that differ",
    "contains": "an item of the listed kind",
    "minContains": "more items of the listed kind",
    "maxContains": "fewer items of the listed kind",
    "unevaluatedItems": "only the listed items",
    "minProperties": "more properties",
    "maxProperties": "fewer properties",
    "unevaluatedProperties": "only the listed properties",
    "dependentRequired": "the properties that go with those given",
    "not": "something its schema does not rule out",
}
