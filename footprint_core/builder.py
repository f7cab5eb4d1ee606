"""The builder: an agent is described step by step, checked at each, and frozen by `build`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack, cast

from footprint_core import plain
from footprint_core.act import ActOptions, ResolvedAct, refuse_unknown_keys, resolve_act
from footprint_core.agent import Agent
from footprint_core.approval import ApproveOnce
from footprint_core.chain.links import Link, chains, link
from footprint_core.credentials import CredentialProvider, credential_provider
from footprint_core.errors import ActTwiceError, BuilderError, MissingHookError, ShadowedToolError
from footprint_core.ledger import Ledger
from footprint_core.memory import MemoryLedger
from footprint_core.middleware import MessageRule, ToolCallRule, ToolResultRule
from footprint_core.output_schema import Shape, shape_of
from footprint_core.permission import NamedChecker, PermissionChecker, named_checker
from footprint_core.providers.port import Provider
from footprint_core.spec import AgentSpec, offers, posture
from footprint_core.tools.function import tool as tool_of
from footprint_core.tools.tool import Tool
from footprint_core.watch import Bus, Watcher
from footprint_core.window.strategy import WindowStrategy, window_strategy
from footprint_core.window.summarize import refuse_own_model

_KEY_BYTES = 16


class AgentBuilder:
    """Describes an agent. `Agent.create` makes one; `build` ends it."""

    def __init__(
        self,
        *,
        provider: Provider,
        model: str,
        name: str,
        id: str | None,
        max_iterations: int,
        wrap_up: bool,
        keep_last_tool_results: int,
        parallel_tools: bool,
        checkpoint_key: bytes | None,
    ) -> None:
        for word, given in (("name", name), ("model", model), ("id", id or name)):
            if not _spoken(given):
                raise BuilderError(f"Agent.create({word}=...) needs a text that is not blank.")
        named = _spoken(getattr(provider, "name", None)) and not isinstance(cast("object", provider), type)
        if not named or not callable(getattr(provider, "reply", None)):
            raise BuilderError("Agent.create(provider=...) needs an object with a name and a reply() method.")
        if keep_last_tool_results is False:
            keep_last_tool_results = 0
        if type(keep_last_tool_results) is not int or keep_last_tool_results < 0:
            raise BuilderError("keep_last_tool_results counts tools; give a whole number of at least 0.")
        if type(max_iterations) is not int or max_iterations < 1:
            raise BuilderError(
                "max_iterations counts the model calls of one turn; give a whole number of at least 1."
            )
        key = cast("object", checkpoint_key)
        if key is not None and not (isinstance(key, bytes) and len(key) >= _KEY_BYTES):
            raise BuilderError(f"checkpoint_key signs checkpoints; give at least {_KEY_BYTES} random bytes.")
        self._parallel_tools = bool(parallel_tools)
        self._checkpoint_key = checkpoint_key
        self._permission: NamedChecker | None = None
        self._credentials: CredentialProvider | None = None
        self._shape: Shape | None = None
        self._provider = provider
        self._model: str = plain.detach(model)
        self._name: str = plain.detach(name)
        self._id: str = plain.detach(id or name)
        self._max_iterations = max_iterations
        self._wrap_up = wrap_up
        self._keep_last_tool_results = keep_last_tool_results
        self._system = ""
        self._tools: dict[str, Tool] = {}
        self._act: ResolvedAct | None = None
        self._tool_rules: list[Link] = []
        self._message_rules: list[Link] = []
        self._window: tuple[WindowStrategy, str] | None = None
        self._watchers: list[Watcher] = []
        self._ledger: Ledger | None = None

    def system(self, prompt: str) -> AgentBuilder:
        """Give the system prompt.

        Raises:
            BuilderError: It is no text.
        """
        if not isinstance(cast("object", prompt), str):
            raise BuilderError(f".system() takes the prompt as text, not {type(prompt).__name__}.")
        self._system = plain.detach(prompt)
        return self

    def tool(self, *tools: Tool | Callable[..., object]) -> AgentBuilder:
        """Give tools: typed functions, or what `tool(...)` made of them.

        Raises:
            ShadowedToolError: Two have one name.
            BuilderError: A function cannot become a tool.
        """
        for given in tools:
            if isinstance(given, type) or not callable(getattr(given, "body", given)):
                raise BuilderError(
                    f".tool() takes functions, one after another, not {_kind(given)}; pass a function."
                )
            made = given if isinstance(given, Tool) else tool_of(given)
            if made.name in self._tools:
                raise ShadowedToolError(tool=made.name)
            self._tools[made.name] = made
        return self

    def act(self, **options: Unpack[ActOptions]) -> AgentBuilder:
        """Give the rules of every moment at once; see `ActOptions`. Called at most once.

        Raises:
            ActTwiceError: It was called before.
            UnknownActKeyError: A key is no moment.
            BuilderError: A bucket or a rule cannot be used; nothing was attached.
        """
        if self._act is not None:
            raise ActTwiceError(
                ".act() is called once; add more rules with .tool_middleware() and .message_middleware(), "
                "a window with .window()."
            )
        refuse_unknown_keys(options)
        resolved = resolve_act(**options)
        if resolved.window is not None:
            self._refuse_second_window(".act(window=...)")
        chains([*resolved.tool_links(), *self._tool_rules], [*resolved.message_links(), *self._message_rules])
        self._act = resolved
        if resolved.window is not None:
            self._window = (resolved.window, ".act(window=...)")
        return self

    def tool_middleware(self, *rules: ToolCallRule | ToolResultRule) -> AgentBuilder:
        """Add rules to the tool chain, closest to the tool.

        Raises:
            MissingHookError: One has neither tool hook.
        """
        links = [link(rule) for rule in rules]
        for one in links:
            if one.on_tool_call is None and one.on_tool_result is None:
                text = (
                    f"The rule {one.name!r} has neither on_tool_call nor on_tool_result; give it one of them."
                )
                raise MissingHookError(text, rule=one.name, bucket="tool_middleware")
        self._tool_rules.extend(links)
        return self

    def message_middleware(self, *rules: MessageRule) -> AgentBuilder:
        """Add rules to the message chain; they are asked at input and at output.

        Raises:
            MissingHookError: One has no `on_message`.
        """
        links = [link(rule) for rule in rules]
        for one in links:
            if one.on_message is None:
                text = f"The rule {one.name!r} has no on_message method; give it one."
                raise MissingHookError(text, rule=one.name, bucket="message_middleware")
        self._message_rules.extend(links)
        return self

    def window(self, strategy: WindowStrategy) -> AgentBuilder:
        """Give the window strategy.

        Raises:
            BuilderError: It is none, or there is one already.
        """
        checked = window_strategy(strategy)
        self._refuse_second_window(".window()")
        self._window = (checked, ".window()")
        return self

    def _refuse_second_window(self, door: str) -> None:
        if self._window is not None:
            strategy, earlier = self._window
            raise BuilderError(
                f"The window strategy {strategy.name!r} was set by {earlier}, so {door} cannot set another; "
                "keep one."
            )

    def permission(self, checker: PermissionChecker) -> AgentBuilder:
        """Say who decides whether a call may be made at all, before any rule is asked.

        Raises:
            BuilderError: It is no checker, or there is one already.
        """
        if self._permission is not None:
            raise BuilderError(f"The checker {self._permission.name!r} was set before; keep one.")
        self._permission = named_checker(checker)
        return self

    def credentials(self, provider: CredentialProvider) -> AgentBuilder:
        """Say who gives the secrets tools declare a need for.

        Raises:
            BuilderError: It is no provider, or there is one already.
        """
        if self._credentials is not None:
            raise BuilderError("A credential provider was set before; keep one.")
        self._credentials = credential_provider(provider)
        return self

    def output_schema(self, schema: object, *, retries: int = 0) -> AgentBuilder:
        """Declare the shape an answer must have; it is judged behind the output rules.

        Args:
            schema: A type pydantic reads, a JSON Schema as a dict, or an `OutputSchema`.
            retries: How often a mismatch is asked about again in one turn.

        Raises:
            BuilderError: One of them cannot be used, or there is a schema already.
        """
        if self._shape is not None:
            raise BuilderError("An output schema was declared before; keep one.")
        self._shape = shape_of(schema, retries)
        return self

    def watch(self, *watchers: Watcher) -> AgentBuilder:
        """Attach watchers, in the order they are told."""
        self._watchers.extend(watchers)
        return self

    def ledger(self, ledger: Ledger) -> AgentBuilder:
        """Say where facts are appended; a `MemoryLedger` when it is not said.

        Raises:
            BuilderError: It is no ledger.
        """
        if not callable(getattr(ledger, "append_inline", None)) or isinstance(ledger, type):
            raise BuilderError(f".ledger() takes a ledger, not {_kind(ledger)}; pass SqliteLedger(path).")
        self._ledger = ledger
        return self

    def build(self) -> Agent:
        """The agent. Later calls on the builder do not change it.

        Raises:
            BuilderError: Rules share a name in one chain, or watchers an id.
        """
        return Agent(self.spec())

    def spec(self) -> AgentSpec:
        """The frozen description `build` makes an agent of.

        Raises:
            BuilderError: As `build`.
        """
        act = self._act
        tool_links = () if act is None else act.tool_links()
        message_links = () if act is None else act.message_links()
        ruled = chains([*tool_links, *self._tool_rules], [*message_links, *self._message_rules])
        window = None if self._window is None else self._window[0]
        refuse_own_model(window, self._provider, self._model)
        self._refuse_missing_tools(ruled.calls)
        # Own tools are offered before those of servers; within each, the order given.
        tools = dict(sorted(self._tools.items(), key=lambda item: item[1].source is not None))
        return AgentSpec(
            agent_id=self._id,
            name=self._name,
            provider=self._provider,
            model=self._model,
            system=self._told(),
            tools=tools,
            chains=ruled,
            window=window,
            ledger=MemoryLedger() if self._ledger is None else self._ledger,
            bus=Bus(self._watchers),
            offers=offers(tools.values()),
            rules=posture(ruled, window),
            max_iterations=self._max_iterations,
            wrap_up=self._wrap_up,
            keep_last_tool_results=self._keep_last_tool_results,
            permission=self._permission,
            credentials=self._credentials,
            shape=self._shape,
            parallel_tools=self._parallel_tools,
            checkpoint_key=self._checkpoint_key,
        )

    def _refuse_missing_tools(self, links: tuple[Link, ...]) -> None:
        for one in links:
            named = one.rule.tools if isinstance(one.rule, ApproveOnce) else None
            # A name that was mistyped would turn the gate off.
            if missing := sorted((named or frozenset()) - self._tools.keys()):
                raise BuilderError(
                    f"The rule {one.name!r} asks about {', '.join(missing)}, and there is no such tool; "
                    "correct the name, or give the tool."
                )

    def _told(self) -> str:
        """The system prompt, and behind it what the model is told about the shape of its answer."""
        instruction = "" if self._shape is None else self._shape.instruction
        return "\n\n".join(part for part in (self._system, instruction) if part)


def _spoken(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip())


def _kind(given: object) -> str:
    return f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
