"""The command `footprint`."""

from __future__ import annotations

import os
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

import click

from footprint_core import plain
from footprint_core.errors import BuilderError, FootprintError, RecorderError
from footprint_observe.cli.exits import Exit, exit_of
from footprint_observe.cli.output import closed_streams, drop_output, one_line

_COMMANDS = (
    "demo",
    "runs",
    "show",
    "timeline",
    "decisions",
    "why",
    "pending",
    "totals",
    "find",
    "tail",
    "sql",
    "serve",
    "open",
    "replay",
    "verify",
    "doctor",
    "abandon",
    "backup",
    "backtest",
    "redact",
    "dashboards",
    "completion",
)
"""Each is the function of its name, in the module of its name."""


class _Group(click.Group):
    """Loads a command when it is asked for, and says a refusal as one sentence, without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of the help."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; None when there is none."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        # All together take several times as long to load as one, and a shell that completes waits for it.
        module = import_module(f"footprint_observe.cli.{cmd_name}")
        return cast("click.Command", getattr(module, cmd_name))

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the arguments; the help is printed here."""
        with _writing():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        closed_streams()
        try:
            with _writing():
                return super().invoke(ctx)
        except FootprintError as error:
            click.ClickException(one_line(str(error))).show()
            for line in _cause(error):
                click.echo(one_line(line), err=True)
            ctx.exit(exit_of(error))


@contextmanager
def _writing() -> Generator[None]:
    """End as a command does whose output cannot be written."""
    try:
        yield
    except BrokenPipeError:
        drop_output()
        raise click.exceptions.Exit(Exit.READER_GONE) from None
    except OSError as error:
        if error.filename is not None:
            raise
        drop_output()
        why = os.strerror(error.errno or 0)
        click.ClickException(f"The output could not be written ({why}); send it elsewhere.").show()
        raise click.exceptions.Exit(Exit.LEDGER) from None


def _cause(error: FootprintError) -> Iterator[str]:
    """What a module of the user raised, and where: the sentence names only its class."""
    cause = error.__cause__
    if cause is None or not isinstance(error, BuilderError | RecorderError):
        return
    frames = traceback.extract_tb(cause.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    yield f"{type(cause).__name__}: {plain.message_of(cause)}{where}"


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="footprint-ledger", prog_name="footprint")
def main() -> None:
    """The ledger of what AI agents decide.

    Exit codes: 0 done, also when a list is empty; 1 the answer is no (a run, a call or a row that is named is
    not in the ledger, `find` finds nothing, nothing can be opened, a check failed); 2 the command or its
    question cannot be understood; 3 the ledger cannot be opened, read or written, or the output cannot be
    written; 141 the reader of the output has gone.
    """
