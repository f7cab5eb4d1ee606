"""The checker of the product is an allow list per role, and what may be a checker."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import (
    BuilderError,
    Permission,
    PermissionPolicy,
    ToolMessage,
    gated_tools,
    tool,
)
from footprint_core.events import PermissionAnswered
from footprint_core.providers import call, reply
from permits import Checker
from story import Seen, answered, describe, run

ROLES = {"support": ["lookup", "refund"], "guest": ["lookup"], "nobody": []}


def lookup() -> str:
    """Look it up."""
    return "found"


def refund() -> str:
    """Pay it back."""
    return "refunded"


@pytest.mark.parametrize(
    ("role", "allowed"), [("support", {"lookup", "refund"}), ("guest", {"lookup"}), ("nobody", set())]
)
def test_a_role_may_call_the_tools_listed_for_it_and_no_other(role: str, allowed: set[str]) -> None:
    policy = PermissionPolicy.from_roles(ROLES, role=role)
    names = ("lookup", "refund", "wipe", "look", "Lookup", "")
    assert {name for name in names if policy.permits(name)} == allowed
    calls = [call(name, name, {}) for name in ("lookup", "refund", "wipe")]
    seen = Seen()
    builder, model = describe([reply(calls=calls), reply(text="ok")], lookup, refund, watch=[seen])
    run(builder.permission(policy).build().run("go"))
    results = {e.target: e.result for e in seen.of(PermissionAnswered)}
    assert results == {name: "allow" if name in allowed else "deny" for name in ("lookup", "refund", "wipe")}
    assert {e.checker for e in seen.of(PermissionAnswered)} == {"policy"}
    told = {m.call_id: m.text for m in model.requests[-1].messages if isinstance(m, ToolMessage)}
    for name, text in told.items():
        assert ("not permitted" in text and role in text) == (name not in allowed)


@pytest.mark.parametrize("role", ["admin", "", "Support", None])
def test_an_unknown_active_role_is_refused_when_the_policy_is_made(role: Any) -> None:
    with pytest.raises(BuilderError) as caught:
        PermissionPolicy.from_roles(ROLES, role=role)
    assert repr(role) in str(caught.value)
    assert "'support', 'guest', 'nobody'" in str(caught.value)
    with pytest.raises(BuilderError, match="none"):
        PermissionPolicy.from_roles({}, role=role)


@pytest.mark.parametrize("tools", ["lookup", None, [1], [["lookup"]], 3, [None]])
def test_the_tools_of_a_role_are_a_list_of_names(tools: Any) -> None:
    with pytest.raises(BuilderError, match="'support'"):
        PermissionPolicy.from_roles({"support": tools}, role="support")


def test_a_policy_is_what_it_was_when_it_was_made() -> None:
    roles = {"guest": ["lookup"]}
    policy = PermissionPolicy.from_roles(roles, role="guest", name="desk")
    roles["guest"].append("refund")
    roles["guest"].remove("lookup")
    assert (policy.permits("lookup"), policy.permits("refund")) == (True, False)
    assert (policy.name, policy.role) == ("desk", "guest")


def test_offering_the_permitted_tools_keeps_their_order_and_is_no_permission() -> None:
    policy = PermissionPolicy.from_roles(ROLES, role="support")
    offered = gated_tools([refund, tool(name="wipe")(lambda: 1), tool(lookup)], policy.permits)
    assert [one.name for one in offered] == ["refund", "lookup"]
    # Only exactly True offers: a predicate that answers with something else is not understood.
    odd: Any = lambda _: "yes"  # noqa: E731 - said in one place
    assert gated_tools([refund], odd) == ()
    builder, model = describe([reply(calls=[call("1", "refund", {})]), reply(text="ok")], *offered)
    answered(run(builder.build().run("go")))
    assert model.requests[-1].messages[-1].text == "refunded"


class Checkless:
    """Has a name, and nothing that checks."""

    name = "checkless"


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        Checkless(),
        Checker(name=" "),
        Checker(name=""),
        PermissionPolicy,
        {"name": "dict"},
        lambda _: Permission(result="allow"),
    ],
)
def test_what_cannot_check_is_refused_where_it_is_given(wrong: Any) -> None:
    builder, _ = describe([])
    with pytest.raises(BuilderError, match="permission checker"):
        builder.permission(wrong)


def test_there_is_one_checker() -> None:
    builder, _ = describe([])
    builder.permission(Checker(name="first"))
    with pytest.raises(BuilderError, match="first"):
        builder.permission(Checker(name="second"))
