"""The section "The system": the diagram, the set and measured values of each variable, constraints and costs."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from cbo_gym._util.summation import add_up
from cbo_gym.drawing import Box, Line, Picture
from cbo_gym.drawing.diagram import OUTLINE
from cbo_gym.envs.picture import COLOURS, roles_of
from cbo_gym.study.budget import trial_cost
from cbo_gym.study.report.snapshot import Snapshot, number
from cbo_gym.study.report.svg import image, page_style

# Largest number of statements of the diagram that are shown; they have the smallest p-values.
MAX_STATEMENTS = 6
# Role of a variable -> words of the report.
ROLES = {"reward": "reward", "acted on": "can be set", "context": "observed before", "other": "only observed"}


def system(snapshot: Snapshot) -> dict[str, Any]:
    """Return the figure of the diagram and the cells of the tables."""
    description, interface, roles = snapshot.description, snapshot.study.interface, roles_of(snapshot.study.interface)
    titles = ROLES | ({"acted on": "has parameters"} if description.parameters else {})
    titles |= {"reward": "objective"} if description.objectives else {}
    # Variable or parameter -> the values that it was set to.
    set_to: dict[str, list[Any]] = defaultdict(list)
    for played in snapshot.rounds:
        for name, value in snapshot.units.native_values(played.action).items():
            set_to[name].append(value)
    variables = [
        [*_set_cells(snapshot, name, titles[roles[name]], set_to[name]), *_measured_cells(snapshot, name)]
        for name in interface.nodes
    ]
    variables += [
        [*_set_cells(snapshot, name, f"parameter of {', '.join(parameter.node)}", set_to[name]), *[None] * 5]
        for name, parameter in description.parameters.items()
    ]
    constraints = []
    for limit in interface.problem.outcomes.constraints:
        values = snapshot.measurements(limit.node)
        constraints.append([str(limit), f"{sum(limit.excess(value) <= 0.0 for value in values)} of {len(values)}"])
    broken_limits = [snapshot.units.broken_limits(played.action) for played in snapshot.rounds]
    limits = []
    for statement in description.limits:
        count = sum(statement not in broken for broken in broken_limits)
        limits.append([statement, f"{count} of {len(broken_limits)}"])
    diagram = _diagram(snapshot, roles, titles, set_to) if snapshot.study.diagram else ""
    return {
        "diagram": diagram,
        "variables": variables,
        "constraints": constraints,
        "limits": limits,
        "campaigns": [
            [campaign.name, campaign.rounds, ", ".join(campaign.differs), campaign.use]
            for campaign in snapshot.study.campaigns
        ],
        "costs": _costs(snapshot),
        "contradictions": _contradictions(snapshot) if diagram and snapshot.rounds else None,
    }


def _contradictions(snapshot: Snapshot) -> dict[str, Any]:
    """Return whether the rounds contradict the diagram: a sentence, and the statements that were tested."""
    check = snapshot.study.check_diagram()
    rows = [
        [
            str(statement),
            "contradict it" if statement in check.refused else "agree",
            statement.rounds,
            f"{statement.correlation:.2f}",
            f"{statement.p_value:.2g}",
        ]
        for statement in check.tested[:MAX_STATEMENTS]
    ]
    more = len(check.tested) - len(rows)
    return {
        "summary": f"{check.summary[:1].upper()}{check.summary[1:]}.",
        "rows": rows,
        "notes": [f"{more} more statements have larger p-values." if more else ""],
    }


def _set_cells(snapshot: Snapshot, name: str, role: str, values: list[Any]) -> list[Any]:
    return [snapshot.with_unit(name), role, *((len(values), values[-1]) if values else (None, None))]


def _measured_cells(snapshot: Snapshot, name: str) -> list[Any]:
    values = snapshot.measurements(name)
    if name in snapshot.units.categories and values:
        return [len(values), f"most often {_typical(values)}", None, None, values[-1]]
    cells = [float(np.mean(values)), min(values), max(values), values[-1]] if values else [None] * 4
    return [len(values) if snapshot.rounds else None, *cells]


def _typical(values: list[Any]) -> Any:
    """Return the mean of numbers, or the most frequent of labels."""
    return max(values, key=values.count) if isinstance(values[0], str) else float(np.mean(values))


def _diagram(snapshot: Snapshot, roles: dict[str, str], titles: dict[str, str], set_to: dict[str, list[Any]]) -> str:
    """Draw the diagram with the mean of each node, how often it was set, and its last action."""
    diagram: Any = snapshot.study.diagram
    lines: dict[str, list[Line]] = defaultdict(list)
    if not snapshot.study.interface.sets_variables:
        for name, parameter in snapshot.description.parameters.items():
            last = f"{name} {number(set_to[name][-1])}" if set_to[name] else name
            for node in parameter.node:
                lines[node].append(Line(last, last))
    else:
        for name in snapshot.study.interface.affected_nodes():
            label = f"set in {len(set_to[name])} of {len(snapshot.rounds)}"
            lines[name].append(Line(label, label, bool(set_to[name])))
    boxes = {}
    for name, role in roles.items():
        values, word = snapshot.measurements(name), "often" if name in snapshot.units.categories else "mean"
        average = f"{word} {number(_typical(values))}" if values else None
        boxes[name] = Box(average, lines[name], COLOURS[role])
    key = [
        ({"facecolor": COLOURS[role], "edgecolor": OUTLINE}, titles[role])
        for role in ("acted on", "context", "reward")
        if role in roles.values()
    ]
    edges = [f"{tail} to {head}" for tail, head in sorted(diagram.directed)]
    edges += [f"{' and '.join(pair)} have a latent cause" for pair in sorted(map(sorted, diagram.bidirected))]
    with page_style():
        return image(Picture(diagram, boxes, key=key).figure, f"Causal diagram: {'; '.join(edges)}")


def _costs(snapshot: Snapshot) -> str:
    """Return the prices, and the cost of all measured trials; imported data cost nothing."""
    costs = snapshot.study.interface.costs
    if costs is None:
        return ""
    entries, numbers = snapshot.study.trials, {played.number for played in snapshot.rounds}
    paid = [
        trial_cost(snapshot.units, entry, entries)
        for entry in entries
        if entry.number in numbers or entry.status == "measured"
    ]
    trials = "One measured trial" if len(paid) == 1 else f"{len(paid)} measured trials"
    spent = f" {trials} cost {number(float(add_up(paid)))} in all." if paid else ""
    return f"Costs: {'; '.join(costs.describe())}.{spent}"
