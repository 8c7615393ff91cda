"""The commands check agent and check problem: the contract that a new agent or problem must keep.

For an agent of this package they also list what it still lacks, such as its page in the docs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from cbo_gym.agent_registry.labels import bare_name
from cbo_gym.cli.application import AGENT_HELP, ENV_HELP, IMPORT_PATH_HELP, MODE_HELP, Group, add_cwd, app
from cbo_gym.cli.completion import agent_names
from cbo_gym.cli.output import print_table
from cbo_gym.errors import UnsupportedModeError
from cbo_gym.task import Mode

checks = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="rich")
app.add_typer(checks, name="check", help="Check the contract of an agent or of a problem: the status is 1 if it fails.")


@checks.command("agent")
def check_one_agent(
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help=AGENT_HELP, autocompletion=agent_names, callback=add_cwd)
    ],
    envs: Annotated[
        list[str] | None,
        typer.Option(
            "--env", "-e", metavar="ENV", help=f"{ENV_HELP} By default one of each mode that it plays. Repeat for more."
        ),
    ] = None,
) -> None:
    """Play an agent on small environments and check its contract; list what an agent of this package still lacks.

    Example: [b]cbo-gym check agent mine:KeepBest[/b]
    """
    from cbo_gym.agent_registry.finding import find_agent, modes_of
    from cbo_gym.agent_registry.zoo import checkout, zoo

    name = bare_name(agent)
    modes = modes_of(find_agent(name)) or tuple(Mode)
    rows = [_contract(agent, [env]) for env in envs] if envs else [_contract(agent, _envs(mode)) for mode in modes]
    root = checkout()
    if root is not None and name in zoo():
        rows += _parts(root, name, zoo()[name])
    _report(rows)


@checks.command("problem")
def check_one_problem(
    problem: Annotated[
        str,
        typer.Argument(
            metavar="PROBLEM",
            help=f"A YAML file, or an import path of a builder, [b]package.module:function[/b]. {IMPORT_PATH_HELP}.",
            callback=add_cwd,
        ),
    ],
    mode: Annotated[Mode | None, typer.Option(metavar="MODE", help=MODE_HELP)] = None,
) -> None:
    """Play a problem in one mode, or in all that it supports, and check its contract.

    Example: [b]cbo-gym check problem plant.yaml[/b]
    """
    from cbo_gym.testing import ContractError, check_problem

    try:
        check_problem(problem, mode=mode)
    except ContractError as error:
        _report([("failed", "the contract", str(error))])
    _report([("ok", f"the contract in {mode or 'every'} mode", "")])


def _envs(mode: str) -> list[str]:
    """Return the registered environments of a mode, the newest version of each."""
    from cbo_gym.envs.registry import entries

    newest = {entry.id.rpartition("-v")[0]: entry.id for entry in entries() if entry.mode == mode}
    return list(newest.values())


def _contract(agent: str, envs: list[str]) -> tuple[str, str, str]:
    """Check the contract on the first environment that the agent plays; return a row of the table."""
    from cbo_gym.testing import ContractError, check_agent

    for env in envs:
        try:
            check_agent(agent, env)
        except UnsupportedModeError as error:
            refusal = str(error)
            continue
        except ContractError as error:
            return "failed", f"the contract on {env}", str(error)
        return "ok", f"the contract on {env}", ""
    return "failed", f"the contract on {envs[0]}", refusal


def _parts(root: Path, name: str, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield a row of the table for each part of an agent of this package: state, name, and how to add a missing part.

    The root is the folder of the checkout, the path is the import path of the agent's class.
    """
    from cbo_gym.agent_registry.cards import agent_card, zoo_cards

    def holds(file: str, content: str) -> bool:
        return (root / file).is_file() and content in (root / file).read_text(encoding="utf-8")

    card, page, class_name = agent_card(name), f"docs/methods/{name}.md", path.partition(":")[2]
    # Part -> whether it is present, and how to add it.
    parts = {
        "agents/__init__.pyi": (
            holds("agents/__init__.pyi", f" as {class_name}\n"),
            "import the class there, so that cbo_gym.agents has it",
        ),
        "meanings of all parameters": (
            all(parameter.meaning for parameter in card.parameters),
            "describe them under Args in the class's docstring",
        ),
        "agents/cards.json": (zoo_cards().get(name) == card, "make zoo"),
        page: (
            holds(page, "## Departures from the paper"),
            "write the paper, the method in mathematics, and its '## Departures from the paper'",
        ),
        "docs/guide/catalogue.md": (holds("docs/guide/catalogue.md", f"`{name}`"), "add a row"),
        "tests/record.json": (holds("tests/record.json", f'"{name} on '), "python -m tests.record --new"),
        "docs/data/agents.csv": (holds("docs/data/agents.csv", f",{name},"), f"make agent-results AGENT={name}"),
        "tests/surface.txt": (holds("tests/surface.txt", f"cbo_gym.agents.{class_name}("), "make surface"),
    }
    for part, (is_present, remedy) in parts.items():
        yield ("ok", part, "") if is_present else ("missing", part, remedy)


def _report(rows: list[tuple[str, str, str]]) -> NoReturn:
    """Print what was checked, and exit with the status 1 if anything failed or is missing, else 0."""
    print_table("", ["", "checked", "what to do"], rows)
    raise typer.Exit(int(any(state != "ok" for state, *_ in rows)))
