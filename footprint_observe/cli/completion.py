"""`footprint completion SHELL`: the script with which a shell completes commands, runs and rules."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, the newest runs and the names of rules in SHELL.

    \b
    bash: eval "$(footprint completion bash)" in ~/.bashrc
    zsh:  eval "$(footprint completion zsh)" in ~/.zshrc
    fish: footprint completion fish > ~/.config/fish/completions/footprint.fish
    """  # noqa: D301 - click reads that character: lines that stay as they are
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    group = ctx.find_root().command
    click.echo(kind(group, {}, "footprint", "_FOOTPRINT_COMPLETE").source())
