"""Play a problem with soft parameters in masked mode: every action coordinate becomes a base arm with a random signal.

An action of masked mode selects a *super arm*, a set of base arms; only the signals of selected arms enter the system.
"""

from __future__ import annotations

from dataclasses import replace

from cbo_gym.actions.domains import SelectedScale
from cbo_gym.errors import ArgumentError
from cbo_gym.problems.base import Problem
from cbo_gym.problems.modes.masked import SuperArms
from cbo_gym.scm import Floats, StructuralCausalModel, Uniform, Variable


def _mask(selected: Floats, signal: Floats) -> Floats:
    return selected * signal


def _unused_name(name: str, used_names: set[str]) -> str:
    """Return the name, with a prime for each time that it is taken."""
    return _unused_name(f"{name}'", used_names) if name in used_names else name


def with_random_signals(problem: Problem) -> Problem:
    """Return the masked problem in which the soft parameters of ``problem`` are base arms.

    Arm i has a signal that is uniform on [0, 1]. If the arm is selected, its signal is the action coordinate i;
    otherwise the coordinate has its null value. A signal that enters several nodes is a latent common cause of them. A
    super arm has at most half of the arms, rounded up.

    Raises:
        ArgumentError: if the problem has no soft parameters.
    """
    scm = problem.scm
    if not isinstance(scm, StructuralCausalModel):
        raise ArgumentError(f"{problem.name}: signals need a StructuralCausalModel; given {type(scm).__name__}")
    if not problem.domains.is_plain:
        raise ArgumentError(f"{problem.name} has parameters with steps, categories or log scales, so no masked mode")
    if scm.action_dim == 0:
        raise ArgumentError(f"{problem.name} has no soft parameters, so no masked mode")
    used_names = {v.name for v in scm.variables}
    signals = [_unused_name(f"z{i}", used_names) for i in range(scm.action_dim)]
    parameters = [_unused_name(f"a{i}", used_names) for i in range(scm.action_dim)]
    variables = []
    for i, null in enumerate(problem.null_action):
        low, high = problem.domains.intervals[i]
        variables.append(Variable(signals[i], _mask, (), (i,), Uniform(), observed=False))
        to_native = SelectedScale(low, high - low, null)
        variables.append(Variable(parameters[i], to_native, (signals[i],), (i,), observed=False))
    for v in scm.variables:
        # The order of the mechanism's arguments: parents, then parameters.
        causes = (*v.parents, *(parameters[i] for i in v.actions))
        variables.append(replace(v, parents=causes, actions=()))
    return problem.with_data(
        SuperArms(size=(scm.action_dim + 1) // 2, exogenous=signals),
        scm=type(scm)(variables, scm.reward),
        action_domains=[(0.0, 1.0)] * scm.action_dim,
        null_action=(),
        optimal_action=None,
        noiseless_mean=False,
    )
