"""Permission, consent and credentials that are not what they have to be."""

from __future__ import annotations

from footprint_core import (
    AgentBuilder,
    Credential,
    CredentialProvider,
    CredentialRequest,
    Permission,
    PermissionChecker,
    PermissionPolicy,
    ToolCallContext,
    ToolOutcome,
    allow,
    gated_tools,
    static_credentials,
    tool,
)


class Yes:
    name = "yes"

    def check(self, call: ToolCallContext) -> bool:
        return True


class Ruling:
    name = "ruling"

    def check(self, call: ToolCallContext) -> ToolOutcome:
        return allow()


class Nameless:
    def check(self, call: ToolCallContext) -> Permission:
        return Permission(result="allow")


class Sure:
    name = "sure"

    async def check(self, call: ToolCallContext) -> None: ...


class Token:
    def credential(self, request: CredentialRequest) -> str:
        return request.service


class Named:
    def credential(self, service: str) -> Credential:
        return Credential(kind="bearer", secret=service)


# refused: mypy assignment, pyright reportAssignmentType
yes: PermissionChecker = Yes()
# refused: mypy assignment, pyright reportAssignmentType
ruling: PermissionChecker = Ruling()
# refused: mypy assignment, pyright reportAssignmentType
nameless: PermissionChecker = Nameless()
# refused: mypy assignment, pyright reportAssignmentType
sure: PermissionChecker = Sure()
# refused: mypy assignment, pyright reportAssignmentType
token: CredentialProvider = Token()
# refused: mypy assignment, pyright reportAssignmentType
named: CredentialProvider = Named()

# refused: mypy arg-type, pyright reportArgumentType
Permission(result="maybe")
# refused: mypy arg-type, pyright reportArgumentType
Permission(result="ask")
# refused: mypy call-arg, pyright reportCallIssue
Permission("allow")
# refused: mypy call-arg, pyright reportCallIssue
Permission()
# refused: mypy arg-type, pyright reportArgumentType
Permission(result="deny", tell_model=3)
# refused: mypy call-arg, pyright reportCallIssue
PermissionPolicy.from_roles({"support": ["look_up"]})
# refused: mypy arg-type, pyright reportArgumentType
PermissionPolicy.from_roles(["look_up"], role="support")
# refused: mypy call-arg, pyright reportCallIssue
Credential("bearer", "secret")
# refused: mypy call-arg, pyright reportCallIssue
Credential(kind="bearer")
# refused: mypy arg-type, pyright reportArgumentType
static_credentials(["mail"])
# refused: mypy arg-type, pyright reportArgumentType
gated_tools([len], ["len"])
# refused: mypy call-overload, pyright reportArgumentType
tool(check_in="sometimes")
# refused: mypy arg-type, pyright reportArgumentType
tool(check_in=lambda args: "yes")
# refused: mypy call-overload, pyright reportArgumentType
tool(check_in=True)
# refused: mypy call-overload, pyright reportArgumentType
tool(needs=3)
# refused: mypy call-overload, pyright reportArgumentType
tool(evidence="args")


def guard(builder: AgentBuilder, permission: Permission, credential: Credential) -> None:
    # refused: mypy arg-type, pyright reportArgumentType
    builder.permission(Yes())
    # refused: mypy arg-type, pyright reportArgumentType
    builder.permission(PermissionPolicy)
    # refused: mypy arg-type, pyright reportArgumentType
    builder.permission(None)
    # refused: mypy arg-type, pyright reportArgumentType
    builder.credentials(Token())
    # refused: mypy arg-type, pyright reportArgumentType
    builder.credentials({"mail": "secret"})
    # refused: mypy misc, pyright reportAttributeAccessIssue
    permission.result = "allow"
