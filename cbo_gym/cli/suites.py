"""The command suites, and the options of a sweep that select one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from cbo_gym._util.arguments import MAX_SEEDS, whole_number
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.cli.application import app
from cbo_gym.cli.output import SEE_JSON, JsonOption, print_hidden, print_json, print_table, say
from cbo_gym.envs.registry import find_entry
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.suites import Suite, load, load_all

# Number of seeds without a suite.
SEEDS = 5
SuiteOption = Annotated[
    str | None,
    typer.Option(
        help="Environments, rounds and seeds of a suite, see cbo-gym suites; --env takes a part of its environments, "
        "other options override."
    ),
]
SuiteSeeds = Annotated[int | None, typer.Option(min=1, help=f"Number of seeds: the suite's, else {SEEDS}, by default.")]
FirstSeed = Annotated[
    int | None,
    typer.Option(
        min=0, help="First seed: the suite's, else 0, by default. Most published runs have seeds from 1000 on."
    ),
]


def grid(
    suite: str | None, envs: Sequence[str] | None, seeds: int | None, first_seed: int | None, horizon: int | None
) -> tuple[Sequence[str] | Suite, range, int | None]:
    """Return the environments, seeds and rounds that a sweep plays."""
    if suite is not None:
        full_suite = load(suite)
        selected: Sequence[str] | Suite = full_suite.select(envs) if envs else full_suite
        default_seeds = full_suite.seed_numbers()
        horizon = full_suite.horizon if horizon is None else horizon
    elif envs:
        selected, default_seeds = envs, range(SEEDS)
    else:
        raise ArgumentError("give environments by --env, a suite by --suite, or both for a part of a suite")
    first = default_seeds.start if first_seed is None else first_seed
    count = len(default_seeds) if seeds is None else whole_number("--seeds", seeds, 1, MAX_SEEDS)
    return selected, range(first, first + count), horizon


@app.command()
def suites(
    name: Annotated[str | None, typer.Argument(help="Only this suite, with its environments.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the suites: named lists of environments, one for each paper and one of all.

    Example: [b]cbo-gym suites survey2026[/b]
    """
    selected = load_all() if name is None else (load(name),)
    if as_json:
        print_json([{**suite.model_dump(), "environments": suite.labels()} for suite in selected])
    elif name is None:
        rows = [
            [suite.name, str(len(suite.labels())), _rounds(suite), str(suite.seeds), suite.metric, suite.title]
            for suite in selected
        ]
        header = ["name", "environments", "rounds", "seeds", "metric", "title"]
        print_hidden(print_table("", header, rows, droppable=["title", "metric"]), SEE_JSON)
    else:
        _print_suite(selected[0])


def _print_suite(suite: Suite) -> None:
    say(f"{suite.name}: {suite.title}", "bold")
    for paragraph in (suite.description, suite.paper):
        if paragraph:
            say(paragraph)
    say(f"{_rounds(suite)} rounds, {suite.seeds} seeds, compared by {suite.metric}")
    header = ["environment", "mode", "optimum", *(["its paper's reference"] if suite.references else [])]
    print_hidden(print_table("", header, [_row(suite, label) for label in suite.labels()]), SEE_JSON)


def _rounds(suite: Suite) -> str:
    return "registered" if suite.horizon is None else str(suite.horizon)


def _row(suite: Suite, label: str) -> list[str]:
    spec = Spec.parse(label)
    entry = find_entry(spec.name)
    # Parameters may change the optimum.
    best = entry.optimum if entry and not spec.parameters else None
    row = [label, str(entry.mode) if entry else "", f"{best.value:.6g}" if best else ""]
    if suite.references:
        row.append(f"{suite.references[label]:.6g}" if label in suite.references else "")
    return row
