"""The application of Typer, and the parameters, help texts and errors that its commands share."""

from __future__ import annotations

import re
import sys
import warnings
from functools import cache, partial
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape

from cbo_gym.agent_registry.labels import WILDCARDS, import_paths
from cbo_gym.errors import CBOGymError, did_you_mean, printable
from cbo_gym.task import Mode
from cbo_gym.version import __version__

# An ANSI escape sequence that sets a colour.
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
#: Exit status after Ctrl-C.
STOPPED = 130

IMPORT_PATH_HELP = (
    "Its code is run, so name only what you trust; a file of the working directory is found too, after all that is "
    "installed: [b]mine:KeepBest[/b] next to mine.py"
)
AGENT_HELP = (
    "An installed agent ([b]GP-UCB[/b]; see cbo-gym agents), with parameters ([b]'GP-UCB(beta=4)'[/b]), or an import "
    f"path of your choice ([b]my_package.module:MyAgent[/b]). {IMPORT_PATH_HELP}."
)
_MEANINGS = ", ".join(f"[b]'{sign}'[/b] stands for {meaning}" for sign, meaning in WILDCARDS.items())
WILDCARD_HELP = f" {_MEANINGS}."
PATTERN_HELP = f"{WILDCARD_HELP} Repeat for more."
ENV_HELP = "Environment id, also with parameters: [b]'CBO/BinaryTree-v0(depth=3)'[/b]. See cbo-gym list."
MODE_HELP = f"Only this feedback mode: {', '.join(tuple(Mode)[:-1])} or {tuple(Mode)[-1]}."
Horizon = Annotated[
    int | None, typer.Option("--horizon", "--rounds", min=1, help="Rounds; the registered number by default.")
]

Names = TypeVar("Names", str, list[str], None)


class Group(typer.core.TyperGroup):
    """Group of commands that prints expected errors in one line, with exit status 2; other errors are bugs."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        for command in self.commands.values():
            # One line for each paragraph, so that the terminal breaks the lines.
            paragraphs = cleandoc(command.help or "").split("\n\n")
            command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                # Each message once, although several calls may warn of the same.
                show = cache(partial(_say, "[yellow]Warning:[/yellow]"))
                warnings.showwarning = lambda warning, *_, **__: show(str(warning))
                return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = _with_hint(error.message)
            raise
        except BrokenPipeError:
            raise
        except KeyboardInterrupt as error:
            _say("Stopped.", "")
            raise typer.Exit(STOPPED) from error
        except (CBOGymError, OSError) as error:
            message = str(error)
            if isinstance(error, OSError) and error.filename is not None:
                message = f"{error.filename}: {error.strerror}"
            _say("[red]Error:[/red]", message)
            raise typer.Exit(2) from error


def _with_hint(message: str) -> str:
    """Add the closest choices to Typer's message about a value that is not among the choices of an option."""
    match = re.fullmatch(r"(?:Value error, )?('(.*)' is not one of (.*?))\.?", message, re.DOTALL)
    return message if match is None else match[1] + did_you_mean(match[2], re.findall("'(.*?)'", match[3]))


def _say(label: str, message: str) -> None:
    """Print a line on the error stream, above a progress bar if there is one. The message has no colours."""
    line = printable(" ".join(COLOUR.sub("", message).split()))
    Console(stderr=True).print(f"{label} {escape(line)}", soft_wrap=True)


app = typer.Typer(cls=Group, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"cbo-gym {__version__}")
        raise typer.Exit


@app.callback(help="Causal Bayesian optimisation: environments, agents and a leaderboard.")
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Read the options before the name of a command."""


def add_cwd(names: Names) -> Names:
    """Append the working directory to Python's search path if one of the names is an import path; return the names.

    Modules of the directory do not replace installed ones, and run only if they are named.
    """
    paths: list[str] = [names] if isinstance(names, str) else names or []
    folder = str(Path.cwd())
    if any(map(import_paths, paths)) and folder not in sys.path:
        sys.path.append(folder)
    return names
