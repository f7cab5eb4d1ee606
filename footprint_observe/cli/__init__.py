"""The command `footprint`."""

from __future__ import annotations

from typing import Any

import click

from footprint_core.errors import FootprintError
from footprint_observe.cli.backtest import backtest
from footprint_observe.cli.decisions import decisions
from footprint_observe.cli.demo import demo
from footprint_observe.cli.output import one_line
from footprint_observe.cli.runs import runs
from footprint_observe.cli.show import show
from footprint_observe.cli.sql import sql
from footprint_observe.cli.why import why


class _Refused(click.ClickException):
    """What was asked cannot be done; one sentence says why."""

    exit_code = 2


class _Group(click.Group):
    """Says a refusal of the product as one sentence, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except FootprintError as error:
            raise _Refused(one_line(str(error))) from None


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="footprint-ledger", prog_name="footprint")
def main() -> None:
    """The ledger of what AI agents decide."""


for _command in (demo, runs, decisions, show, why, sql, backtest):
    main.add_command(_command)
