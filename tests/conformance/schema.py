"""An output schema as a scenario describes it: an object with required fields."""

from __future__ import annotations

from conformance.scenario import OutputSchemaSpec
from conformance.values import Json, is_number, is_object


class SuiteSchema:
    """Judges an answer that was read as JSON."""

    def __init__(self, spec: OutputSchemaSpec) -> None:
        self._required = spec.required

    @property
    def instruction(self) -> str:
        """What the model is told about the answer."""
        fields = ", ".join(f"{field} ({kind})" for field, kind in self._required.items())
        return f"Answer with one JSON object. Its required fields: {fields}."

    def check(self, value: Json) -> object:
        """The answer.

        Raises:
            ValueError: The first fault.
        """
        if not is_object(value):
            raise ValueError("answer must be an object")
        for field, kind in self._required.items():
            if field not in value:
                raise ValueError(f"field '{field}' is required")
            if not _is(kind, value[field]):
                raise ValueError(f"field '{field}' must be {kind}")
        return value


def _is(kind: str, value: Json) -> bool:
    return is_number(value) if kind == "number" else isinstance(value, str if kind == "string" else bool)
