"""The system: its diagram, with what was set and seen of each variable, constraints and costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cbo_gym.drawing import Box, Line, Picture
from cbo_gym.drawing.diagram import OUTLINE
from cbo_gym.envs.picture import COLOURS, roles_of
from cbo_gym.errors import ArgumentError
from cbo_gym.study.report.markup import number, paragraph, section, table, wide
from cbo_gym.study.report.naming import with_unit
from cbo_gym.study.report.rounds import Seen, done_in, seen_rounds
from cbo_gym.study.report.svg import image, page_style
from cbo_gym.study.study import Study
from cbo_gym.sums import add_up

ROLES = {"reward": "reward", "acted on": "can be set", "context": "seen before", "other": "only seen"}
PARAMETRIC = {"acted on": "has parameters"}


def system_section(study: Study) -> str:
    """The diagram, and a table of the variables."""
    rounds = seen_rounds(study)
    beside = f'<div class="beside">{_diagram(study, rounds)}{_variables(study, rounds)}</div>'
    return section("system", "The system", beside, _constraints(study, rounds), _costs(study, rounds))


def _diagram(study: Study, rounds: list[Seen]) -> str:
    if study.diagram is None:
        graphs = len(study.about.candidates)
        return paragraph(f"The diagram is one of {graphs} candidates." if graphs else "The diagram is not known.")
    set_to, means = _settings(study, rounds), _means(study, rounds)
    roles = roles_of(study.feedback)
    lines = _lines(study, set_to, len(rounds))
    boxes = {
        name: Box(f"mean {number(means[name])}" if name in means else None, lines.get(name, ()), COLOURS[role])
        for name, role in roles.items()
    }
    key = [
        ({"facecolor": COLOURS[role], "edgecolor": OUTLINE}, _role(study, role))
        for role in ("acted on", "context", "reward")
        if role in roles.values()
    ]
    with page_style():
        picture = Picture(study.diagram, boxes, key=key)
        return wide(image(picture.figure, _heard(study)), "The causal diagram")


def _role(study: Study, role: str) -> str:
    names = ROLES | (PARAMETRIC if study.about.parameters else {})
    return names.get(role, role)


def _heard(study: Study) -> str:
    assert study.diagram is not None
    edges = [f"{tail} to {head}" for tail, head in sorted(study.diagram.directed)]
    edges += [
        f"{' and '.join(sorted(pair))} have a latent cause" for pair in sorted(map(sorted, study.diagram.bidirected))
    ]
    return f"Causal diagram: {'; '.join(edges)}"


def _settings(study: Study, rounds: list[Seen]) -> dict[str, list[Any]]:
    """Variable or parameter -> the values that it was set to, in order."""
    found: dict[str, list[Any]] = defaultdict(list)
    for one in rounds:
        for name, value in done_in(study, one.action).items():
            found[name].append(value)
    return found


def _means(study: Study, rounds: list[Seen]) -> dict[str, float]:
    found = {}
    for name in study.feedback.nodes:
        measured = [value for one in rounds if (value := one.values.get(name)) is not None]
        if measured:
            found[name] = float(np.mean(measured))
    return found


def _lines(study: Study, set_to: Mapping[str, list[Any]], rounds: int) -> dict[str, list[Line]]:
    """The actions at each node: how often it was set, and to what last."""
    found: dict[str, list[Line]] = defaultdict(list)
    parameters = study.about.parameters if study.about.mode in ("soft", "aggregated") else {}
    for name, one in parameters.items():
        last = f"{name} {number(set_to[name][-1])}" if set_to.get(name) else name
        found[one.node].append(Line(last, last))
    if not parameters:
        for name in study.feedback.acted_on():
            times = len(set_to.get(name, ()))
            text = f"set in {times} of {rounds}"
            found[name].append(Line(text, text, times > 0))
    return found


def _variables(study: Study, rounds: list[Seen]) -> str:
    set_to, roles = _settings(study, rounds), roles_of(study.feedback)
    rows = [_row(study, name, roles[name], set_to.get(name, []), rounds) for name in study.feedback.nodes]
    for name in study.about.parameters:
        rows.append(_row(study, name, f"parameter of {study.about.parameters[name].node}", set_to.get(name, []), []))
    header = ["Variable", "Role", "Times set", "Last set to", "Measured", "Mean", "Least", "Greatest", "Last"]
    return table("What was set and seen of each variable", header, rows)


def _row(study: Study, name: str, role: str, set_to: Sequence[Any], rounds: list[Seen]) -> list[str]:
    values = [value for one in rounds if (value := one.values.get(name)) is not None]
    seen = [np.mean(values), min(values), max(values), values[-1]] if values else [None] * 4
    set_count, last = (str(len(set_to)), number(set_to[-1])) if set_to else ("", "")
    measured = str(len(values)) if rounds else ""
    return [with_unit(study, name), _role(study, role), set_count, last, measured, *map(number, seen)]


def _constraints(study: Study, rounds: list[Seen]) -> str:
    rows = []
    for limit in study.feedback.problem.outcomes.constraints:
        values = [value for one in rounds if (value := one.values.get(limit.node)) is not None]
        met = sum(limit.excess(value) <= 0.0 for value in values)
        rows.append([str(limit), f"{met} of {len(values)}"])
    return (
        table("Constraints, on expected values", ["Constraint", "Rounds that met it, as measured"], rows)
        if rows
        else ""
    )


def _costs(study: Study, rounds: list[Seen]) -> str:
    """The prices, and the cost of all trials told so far; imported data cost nothing."""
    costs = study.feedback.costs
    if costs is None:
        return ""
    paid = []
    for one in rounds:
        if one.number is not None:
            try:
                paid.append(float(study.feedback.cost(study.feedback.decode(one.action))))
            except (ArgumentError, ValueError):  # done outside of the bounds
                continue
    spent = f" The {len(paid)} trials told cost {number(float(add_up(paid)))} in all." if paid else ""
    return paragraph(f"Costs: {'; '.join(costs.in_words())}.{spent}")
