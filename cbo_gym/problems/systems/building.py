"""Build systems and problems from tables of equations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cbo_gym.actions import Interval
from cbo_gym.problems.base import Problem, gaussian_noise, minimal_targets
from cbo_gym.scm import Distribution, StructuralCausalModel, System, Variable, Zero, own_noise
from cbo_gym.scm.formula import Formula

OWN_NOISE = "u"


def read_equations(
    equations: Mapping[str, str],
    noise: Distribution | float | Mapping[str, Distribution | float],
    *,
    actions: Sequence[str] = (),
    latent: str = "",
) -> list[Variable]:
    """Return the variables of a system from its equations, as in ``{"X": "u", "Z": "exp(-X) + u", "Y": "cos(Z)"}``.

    Args:
        equations: variable -> its equation in other variables, actions and ``u``, its own noise.
        noise: distribution of every ``u``, or the standard deviation of normal noise with mean 0; or these by variable.
        actions: names of the soft parameters in the equations.
        latent: names of the latent variables, separated by blanks.
    """
    variables = []
    for name, expression in equations.items():
        words = set(re.findall(r"[A-Za-z_]\w*", expression))
        parents = tuple(other for other in equations if other in words)
        indices = tuple(index for index, action in enumerate(actions) if action in words)
        arguments = (*parents, *(actions[index] for index in indices), OWN_NOISE)
        mechanism = own_noise if expression == OWN_NOISE else Formula(arguments, expression)
        distribution = noise.get(name, 0.0) if isinstance(noise, Mapping) else noise
        if OWN_NOISE not in words:
            distribution = Zero()
        elif not isinstance(distribution, Distribution):
            distribution = gaussian_noise(distribution)
        is_observed = name not in latent.split()
        variables.append(Variable(name, mechanism, parents, indices, distribution, observed=is_observed))
    return variables


def hard_problem(
    name: str,
    system: System | Sequence[Variable],
    manipulable: Mapping[str, Interval],
    description: str,
    citation: str,
    **fields: Any,
) -> Problem:
    """Return a problem whose targets are the minimal intervention sets, unless they are given."""
    scm = system if isinstance(system, System) else StructuralCausalModel(system, reward="Y")
    if "targets" not in fields:
        fields["targets"] = minimal_targets(scm.diagram, scm.reward, manipulable)
    return Problem(name, scm, description, citation, manipulable=manipulable, **fields)
