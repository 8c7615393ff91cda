"""The application, and what its commands share."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from typing import Annotated, Any, TypeGuard

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cbo_gym.errors import CBOGymError

console = Console()

AGENT_HELP = (
    "An installed agent ([b]GP-UCB[/b]), with parameters ([b]'GP-UCB(beta=2)'[/b]), or an import path "
    "([b]my_package.module:MyAgent[/b]; its code is run, so name only what you trust)."
)
PATTERN_HELP = " [b]'*'[/b] and [b]?[/b] stand for any text. Repeat for more."
ENV_HELP = "Environment id, also with parameters: [b]'CBO/BinaryTree-v0(depth=3)'[/b]. See cbo-gym list."
Horizon = Annotated[int | None, typer.Option(min=1, help="Rounds; the registered number by default.")]


class _Group(typer.core.TyperGroup):
    """Shows errors that the user can mend as one line, with exit status 2; anything else is a bug and its traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except BrokenPipeError:  # whoever reads has seen enough
            raise
        except KeyboardInterrupt as error:
            _say("Stopped.", "")
            raise typer.Exit(STOPPED) from error
        except (CBOGymError, OSError) as error:
            _say("[red]Error:[/red]", f"{error.filename}: {error.strerror}" if _of_a_file(error) else str(error))
            raise typer.Exit(2) from error


def _of_a_file(error: Exception) -> TypeGuard[OSError]:
    return isinstance(error, OSError) and error.filename is not None


def _say(kind: str, text: str) -> None:
    """One line on the error stream, above a progress bar if there is one."""
    Console(stderr=True).print(f"{kind} {escape(' '.join(text.split()))}", soft_wrap=True)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say("[yellow]Warning:[/yellow]", str(message))


app = typer.Typer(
    cls=_Group,
    help="Causal Bayesian optimisation: environments, agents and a leaderboard.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

STOPPED = 130  # the status of what Ctrl-C ended
NARROWEST_NAME = 8  # characters


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> None:
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, name in enumerate(header):
        # Headers break between words, so that on 80 columns names need not be squeezed to nothing.
        longest = max(len(text) for text in [*name.split(), *(row[place] for row in rows)])
        if place:
            table.add_column(textwrap.fill(name, longest), justify="right", no_wrap=True, overflow="fold")
        else:
            table.add_column(name, min_width=min(longest, NARROWEST_NAME), overflow="fold")
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    console.print(table)
    if note:
        console.print(f"[dim]{escape(note)}[/dim]")
    console.print()
