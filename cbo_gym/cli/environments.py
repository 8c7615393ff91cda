"""list, show, optimum: what there is to play."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from cbo_gym.cli.application import ENV_HELP, app, console
from cbo_gym.errors import ArgumentError, did_you_mean
from cbo_gym.registry import EnvEntry, RecordedOptimum, entries, find_entry, registry_path, write_optimum
from cbo_gym.task import Mode


@app.command("list")
def list_envs(
    mode: Annotated[Mode | None, typer.Option(help="Only this feedback mode.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only environments with this tag.")] = None,
    paper: Annotated[str | None, typer.Option(help="Only papers whose citation holds this text.")] = None,
) -> None:
    """List the environments.

    Example: [b]cbo-gym list --mode hard[/b]
    """
    chosen = [
        entry
        for entry in entries()
        if (mode is None or entry.mode == mode)
        and (tag is None or tag in entry.tags)
        and (paper is None or paper.lower() in f"{entry.paper} {entry.section}".lower())
    ]
    if not chosen:
        there_are = {
            "modes": {entry.mode.value for entry in entries()},
            "tags": {tag for entry in entries() for tag in entry.tags},
            "papers": {entry.paper for entry in entries()},
        }
        known = "; ".join(f"the {name} are {', '.join(sorted(values))}" for name, values in there_are.items())
        raise ArgumentError(f"no environment matches; {known}")
    table = Table(box=None, pad_edge=False)
    for name in ("id", "mode", "horizon", "optimum"):
        table.add_column(name, no_wrap=True)
    table.add_column("tags")
    for entry in chosen:
        best = f"{entry.optimum.value:.6g}" if entry.optimum else ""
        table.add_row(entry.id, entry.mode, str(entry.horizon), best, ", ".join(entry.tags))
    console.print(table)


@app.command()
def show(env_id: Annotated[str, typer.Argument(metavar="ENV_ID", help=ENV_HELP)]) -> None:
    """Show one environment: spaces, graph, optimum, citation.

    Example: [b]cbo-gym show CBO/Alpine2-v0[/b]
    """
    from cbo_gym.feedback.contextual import name_scope
    from cbo_gym.oracle import oracle_of
    from cbo_gym.specs import Spec, make_env

    spec = Spec.parse(env_id)
    made = make_env(spec)
    assert made.spec is not None
    oracle = oracle_of(made)
    entry = find_entry(spec.name)
    with console.status("Looking for the optimum ..."):
        best = oracle.optimum
    feedback, problem = oracle.feedback, oracle.problem
    codec, domains = feedback.codec, problem.domains
    settable = problem.manipulable if codec.choices else {}
    scopes = problem.contexts.scopes if codec.choices and problem.contexts else ()
    console.print(f"[b]{spec}[/b]  {problem.description}")
    rows: list[tuple[str, str]] = [
        ("mode", f"{feedback.mode}, {made.spec.max_episode_steps} rounds"),
        ("action space", str(feedback.action_space)),
        ("observation space", str(feedback.observation_space)),
        *(
            (f"action[{i}]", f"{f'{name}, ' if domains.named else ''}{low:g} to {high:g}")
            for i, (name, (low, high)) in enumerate(zip(domains.names, domains.intervals, strict=True))
        ),
        *((f"do({name})", f"{low:g} to {high:g}") for name, (low, high) in settable.items()),
        *((f"scope {i}", name_scope(scope)) for i, scope in enumerate(scopes)),
        ("optimum", f"{best.value:.6g} (standard error {best.standard_error:.1g})"),
        ("reached at", codec.to_text(codec.to_record(best.action))),
        ("random action", f"{best.random_value:.6g} (standard error {best.random_standard_error:.1g})"),
        ("problem from", problem.citation),
    ]
    if entry is not None:
        rows += [("paper", f"{entry.paper}, {entry.section}"), ("tags", ", ".join(entry.tags))]
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, text in rows:
        table.add_row(f"[dim]{name}[/dim]", escape(text))
    console.print(table)
    console.print("\n[dim]graph[/dim]")
    diagram = feedback.scm.diagram
    for node in feedback.scm.nodes:
        causes = [*diagram.parents(node)]
        own = feedback.scm.action_nodes.get(node, ())
        causes += [domains.names[i] if domains.named else f"action[{i}]" for i in own]
        hidden = sorted(diagram.confounding.neighbors(node))
        line = f"  {node} <- {', '.join(causes) or '(noise)'}"
        line += f"   confounded with {', '.join(hidden)}" if hidden else ""
        console.print(escape(line) + ("   [b]reward[/b]" if node == feedback.scm.reward else ""))


@app.command()
def optimum(
    env_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ENV_ID]...", help="Registered ids; all by default.")
    ] = None,
    write: Annotated[bool, typer.Option(help="Record the results in envs_registry.yaml.")] = False,
) -> None:
    """Compute the optimum of environments, as recorded in envs_registry.yaml.

    Example: [b]cbo-gym optimum CBO/Dropwave-Noisy-v0[/b]
    """
    from cbo_gym.progress import progress_bar

    by_id = {entry.id: entry for entry in entries()}
    wanted = env_ids or list(by_id)
    if unknown := [name for name in wanted if name not in by_id]:
        hints = "".join(did_you_mean(name, by_id) for name in unknown)
        raise ArgumentError(f"not registered: {', '.join(unknown)}{hints}; see cbo-gym list")
    with progress_bar() as progress:
        for name in progress.track(wanted, description="optima"):
            found, action = _compute_optimum(by_id[name])
            best = f"{found.value:.8g} (standard error {found.standard_error:.1g})"
            progress.console.print(
                f"{name}: {best} at {escape(action)}; random action {found.random_value:.6g}",
                soft_wrap=True,
            )
            if write:
                write_optimum(registry_path(), name, found)


def _compute_optimum(entry: EnvEntry) -> tuple[RecordedOptimum, str]:
    """The optimum as it is recorded, and its action in words."""
    import gymnasium as gym

    from cbo_gym.oracle import oracle_of

    oracle = oracle_of(gym.make(entry.id))
    found = oracle.find_optimum()
    codec = oracle.feedback.codec
    record = codec.to_record(found.action)
    optimum = RecordedOptimum(
        value=found.value,
        action=record,
        standard_error=found.standard_error,
        random_value=found.random_value,
        random_standard_error=found.random_standard_error,
        command=f"cbo-gym optimum {entry.id} --write",
    )
    return optimum, codec.to_text(record)
