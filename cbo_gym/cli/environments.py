"""The commands list, show and optimum."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from cbo_gym.actions import TypedDomain
from cbo_gym.actions.sets import to_record, to_string
from cbo_gym.cli.application import ENV_HELP, IMPORT_PATH_HELP, MODE_HELP, add_cwd, app
from cbo_gym.cli.completion import env_ids, tags
from cbo_gym.cli.output import (
    SEE_CSV,
    CsvOption,
    JsonOption,
    flatten,
    print_csv,
    print_hidden,
    print_json,
    print_table,
    require_one_format,
    say,
)
from cbo_gym.envs.registration import registry_path
from cbo_gym.envs.registry import EnvEntry, entries, find_entry, write_optimum
from cbo_gym.errors import ArgumentError, did_you_mean
from cbo_gym.problems.recorded import RecordedOptimum
from cbo_gym.task import Mode

if TYPE_CHECKING:
    from cbo_gym.agent_registry.labels import Spec
    from cbo_gym.modes.oracles import Oracle

# Columns of the CSV, and keys of the JSON, that list and optimum print.
LIST_COLUMNS = (
    "id", "mode", "horizon", "optimum", "optimum_standard_error", "random_value", "random_standard_error", "tags",
    "paper", "section",
)  # fmt: skip
OPTIMUM_COLUMNS = ("id", "value", "standard_error", "action", "in_words", "random_value", "random_standard_error")
# Largest number of arms that show prints.
MAX_ARMS = 27


@app.command("list")
def list_envs(
    mode: Annotated[Mode | None, typer.Option(metavar="MODE", help=MODE_HELP)] = None,
    tag: Annotated[str | None, typer.Option(help="Only environments with this tag.", autocompletion=tags)] = None,
    paper: Annotated[str | None, typer.Option(help="Only papers whose citation contains this string.")] = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """List the environments.

    Example: [b]cbo-gym list --mode hard[/b]
    """
    require_one_format(as_json, as_csv)
    listed = [_entry_row(entry) for entry in _select_entries(mode, tag, paper)]
    if as_json:
        print_json(listed)
    elif as_csv:
        print_csv(LIST_COLUMNS, listed)
    else:
        header = ["id", "mode", "horizon", "optimum", "tags"]
        rows = []
        for row in listed:
            best = "" if row["optimum"] is None else f"{row['optimum']:.6g}"
            rows.append([row["id"], row["mode"], str(row["horizon"]), best, ", ".join(row["tags"])])
        print_hidden(print_table("", header, rows, droppable=["horizon", "optimum", "mode"]), SEE_CSV)


def _select_entries(mode: Mode | None, tag: str | None, paper: str | None) -> list[EnvEntry]:
    selected = [
        entry
        for entry in entries()
        if (mode is None or entry.mode == mode)
        and (tag is None or tag in entry.tags)
        and (paper is None or paper.lower() in f"{entry.paper} {entry.section}".lower())
    ]
    if not selected:
        choices = {
            "modes": {entry.mode.value for entry in entries()},
            "tags": {tag for entry in entries() for tag in entry.tags},
            "papers": {entry.paper for entry in entries()},
        }
        hint = did_you_mean(tag, choices["tags"]) if tag is not None else ""
        lists = "; ".join(f"the {noun} are {', '.join(sorted(names))}" for noun, names in choices.items())
        raise ArgumentError(f"no environment matches{hint}; {lists}")
    return selected


def _entry_row(entry: EnvEntry) -> dict[str, Any]:
    """Return an entry with the keys of :data:`LIST_COLUMNS`."""
    best = entry.optimum
    numbers = (best.value, best.standard_error, best.random_value, best.random_standard_error) if best else (None,) * 4
    values = (entry.id, entry.mode.value, entry.horizon, *numbers, entry.tags, entry.paper, entry.section)
    return dict(zip(LIST_COLUMNS, values, strict=True))


@app.command()
def show(
    env_id: Annotated[
        str,
        typer.Argument(
            metavar="ENV_ID",
            help=f"{ENV_HELP} A problem may be an import path of your choice. {IMPORT_PATH_HELP}.",
            autocompletion=env_ids,
            callback=add_cwd,
        ),
    ],
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show one environment: spaces, graph, optimum, citation.

    Example: [b]cbo-gym show CBO/Alpine2-v0[/b]
    """
    from cbo_gym.agent_registry.labels import Spec
    from cbo_gym.envs.making import make_env
    from cbo_gym.envs.oracle import oracle_of

    require_one_format(as_json, as_csv)
    spec = Spec.parse(env_id)
    instance = make_env(spec)
    assert instance.spec is not None
    oracle = oracle_of(instance)
    with Console(stderr=True).status("Looking for the optimum ..."):
        document = _describe_env(spec, oracle, instance.spec.max_episode_steps)
    if as_json:
        print_json(document)
    elif as_csv:
        print_csv(["field", "value"], ({"field": path, "value": value} for path, value in flatten(document)))
    else:
        print_table("", ["", ""], _fields(document))


def _describe_env(spec: Spec, oracle: Oracle, horizon: int | None) -> dict[str, Any]:
    """Return the JSON document of an environment."""
    from cbo_gym.problems.modes.discrete import arms_of
    from cbo_gym.problems.variations.graph_knowledge import describe_knowledge

    dynamics, problem, entry = oracle.dynamics, oracle.problem, find_entry(spec.name)
    codec, domains, scm = dynamics.codec, problem.domains, dynamics.scm
    settable = dynamics.manipulable if codec.choices else {}
    names = domains.names if domains.named else [f"action[{i}]" for i in range(len(domains.names))]
    best = oracle.optimum
    # With a wrong graph the best action may not be offered.
    true_codec = dynamics.truth.codec
    record = to_record(true_codec, best.action)
    return {
        "id": str(spec),
        "description": problem.description,
        "mode": dynamics.mode.value,
        "horizon": horizon,
        "action_space": str(dynamics.action_space),
        "observation_space": str(dynamics.observation_space),
        "actions": [_bounds(name, ends) for name, ends in zip(names, domains.intervals, strict=True)],
        "settable": [_bounds(name, ends) for name, ends in settable.items()],
        "scopes": list(codec.choices) if dynamics.observes_before else [],
        "arms": [codec.to_string(dict(arm)) for arm in arms_of(problem)],
        "optimum": {
            "value": best.value,
            "standard_error": best.standard_error,
            "action": record,
            "in_words": to_string(true_codec, record),
            "random_value": best.random_value,
            "random_standard_error": best.random_standard_error,
        },
        "objectives": list(map(str, problem.outcomes.objectives)),
        "constraints": list(map(str, problem.outcomes.constraints)),
        "costs": problem.outcomes.costs.describe() if problem.outcomes.costs else [],
        "graph_knowledge": describe_knowledge(problem),
        "citation": problem.citation,
        "paper": entry and entry.paper,
        "section": entry and entry.section,
        "tags": entry.tags if entry else [],
        "graph": [
            {
                "node": node,
                "causes": [*scm.diagram.parents(node), *(names[i] for i in scm.action_nodes.get(node, ()))],
                "confounded_with": sorted(scm.diagram.confounding.neighbors(node)),
                "reward": node == scm.reward,
            }
            for node in scm.nodes
        ],
    }


def _bounds(name: str, ends: tuple[float, float]) -> dict[str, Any]:
    domain = {"kind": ends.in_words()} if isinstance(ends, TypedDomain) else {}
    return {"name": name, "low": float(ends[0]), "high": float(ends[1])} | domain


def _fields(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the document of an environment as rows of a table."""
    best = document["optimum"]
    return [
        (document["id"], document["description"]),
        ("mode", f"{document['mode']}, {document['horizon']} rounds"),
        ("action space", document["action_space"]),
        ("observation space", document["observation_space"]),
        *((action["name"], _range(action)) for action in document["actions"]),
        *((f"do({variable['name']})", _range(variable)) for variable in document["settable"]),
        *((f"scope {i}", scope) for i, scope in enumerate(document["scopes"])),
        *((f"arm {i}", arm) for i, arm in enumerate(document["arms"][:MAX_ARMS])),
        *([("...", f"{len(document['arms']) - MAX_ARMS} more arms")] if len(document["arms"]) > MAX_ARMS else []),
        ("optimum", f"{best['value']:.6g} (standard error {best['standard_error']:.1g})"),
        ("reached at", best["in_words"]),
        ("random action", f"{best['random_value']:.6g} (standard error {best['random_standard_error']:.1g})"),
        *(("objective", objective) for objective in document["objectives"]),
        *(("constraint", constraint) for constraint in document["constraints"]),
        *([("costs", ", ".join(document["costs"]))] if document["costs"] else []),
        ("agents know", document["graph_knowledge"]),
        ("problem from", document["citation"]),
        *([("paper", f"{document['paper']}, {document['section']}")] if document["paper"] else []),
        *([("tags", ", ".join(document["tags"]))] if document["tags"] else []),
        *(("" if index else "graph", _causes(node)) for index, node in enumerate(document["graph"])),
    ]


def _range(bounds: dict[str, Any]) -> str:
    return bounds.get("kind") or f"{bounds['low']:g} to {bounds['high']:g}"


def _causes(node: dict[str, Any]) -> str:
    line = f"{node['node']} <- {', '.join(node['causes']) or '(noise)'}"
    if node["confounded_with"]:
        line += f"   confounded with {', '.join(node['confounded_with'])}"
    return f"{line}   reward" if node["reward"] else line


@app.command()
def optimum(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ENV_ID]...", help="Registered ids; all by default.", autocompletion=env_ids),
    ] = None,
    write: Annotated[bool, typer.Option(help="Record the results in envs_registry.yaml.")] = False,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Compute the optimum of environments, as recorded in envs_registry.yaml.

    Example: [b]cbo-gym optimum CBO/Dropwave-Noisy-v0[/b]
    """
    require_one_format(as_json, as_csv)
    by_id = {entry.id: entry for entry in entries()}
    ids = names or list(by_id)
    if unknown := [name for name in ids if name not in by_id]:
        hints = "".join(did_you_mean(name, by_id) for name in unknown)
        raise ArgumentError(f"not registered: {', '.join(unknown)}{hints}; see cbo-gym list")
    optima = _optima([by_id[name] for name in ids], write)
    if as_json:
        print_json(list(optima))
    elif as_csv:
        print_csv(OPTIMUM_COLUMNS, optima)
    else:
        for best in optima:
            value = f"{best['value']:.8g} (standard error {best['standard_error']:.1g})"
            say(f"{best['id']}: {value} at {best['in_words']}; random action {best['random_value']:.6g}")
            sys.stdout.flush()


def _optima(selected: list[EnvEntry], write: bool) -> Iterator[dict[str, Any]]:
    """Yield the optimum of each environment, with the keys of :data:`OPTIMUM_COLUMNS`, as soon as it is computed."""
    import gymnasium as gym

    from cbo_gym._util.progress import progress_bar
    from cbo_gym.envs.oracle import oracle_of

    with progress_bar() as progress:
        for entry in progress.track(selected, description="optima"):
            oracle = oracle_of(gym.make(entry.id))
            solution, codec = oracle.find_optimum(), oracle.dynamics.codec
            record = to_record(codec, solution.action)
            optimum = RecordedOptimum(
                value=solution.value,
                action=record,
                standard_error=solution.standard_error,
                random_value=solution.random_value,
                random_standard_error=solution.random_standard_error,
                command=f"cbo-gym optimum {entry.id} --write",
                **solution.fields,
            )
            if write:
                write_optimum(registry_path(), entry.id, optimum)
            fields = {"id": entry.id, **optimum.model_dump(), "in_words": to_string(codec, record)}
            yield {name: fields[name] for name in OPTIMUM_COLUMNS}
