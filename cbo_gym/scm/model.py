"""Structural causal models with vectorised ancestral sampling."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from cbo_gym.errors import ArgumentError, CBOGymError, OperationError
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.formula import SCOPE, Formula
from cbo_gym.scm.intervention import Intervention, Mask
from cbo_gym.scm.noise import Zero
from cbo_gym.scm.straight_line import StraightLineCode
from cbo_gym.scm.system import NO_INTERVENTION, Draws, System, Values, Variable, own_noise
from cbo_gym.scm.values import Floats


class StructuralCausalModel(System):
    """Variables with mechanisms and noise, one of which is the reward.

    Args:
        variables: the variables, in any order.
        reward: name of the reward variable: observed, without children.

    Attributes:
        variables: in topological order, latent ones included, the reward last.
        nodes: names of the observed variables in that order, the reward last.
        diagram: the diagram over the observed variables, latent ones projected out.
        full_diagram: the diagram with the latent variables.

    Raises:
        ArgumentError: if a name is repeated, a parent is unknown, the diagram has a cycle, the action indices have
            gaps, or the reward is missing, is latent or has children.
    """

    variables: tuple[Variable, ...]

    def __init__(self, variables: Sequence[Variable], reward: str) -> None:
        by_name = {variable.name: variable for variable in variables}
        edges = [(parent, v.name) for v in variables for parent in (*v.parents, *v.idle_parents)]
        self.full_diagram = CausalDiagram([v.name for v in variables], edges)
        if reward not in by_name:
            raise ArgumentError(f"the reward {reward!r} is not one of the variables {list(by_name)}")
        if not by_name[reward].observed:
            raise ArgumentError(f"the reward {reward!r} must be an observed variable")
        if children := self.full_diagram.children(reward):
            raise ArgumentError(
                f"the reward {reward!r} must have no children; it has {children}: leave its descendants out, "
                "because they cannot change the reward"
            )
        order = [name for name in self.full_diagram.topological_order if name != reward]
        self.reward = reward
        self.variables = tuple(by_name[name] for name in [*order, reward])
        self.nodes = tuple(v.name for v in self.variables if v.observed)
        used_indices = sorted({index for v in variables for index in v.actions})
        if used_indices != list(range(len(used_indices))):
            raise ArgumentError(f"action indices must be 0..q-1 without gaps; the mechanisms use {used_indices}")
        self.action_dim = len(used_indices)
        self.action_nodes = self._action_nodes()
        latents = [v.name for v in self.variables if not v.observed]
        projected = self.full_diagram.latent_projection(latents)
        self.diagram = CausalDiagram(self.nodes, projected.directed, projected.bidirected)
        self.noisy = tuple(v for v in self.variables if not isinstance(v.noise, Zero))
        self._straight_line = _compile(self.variables, by_name, self.all_names)
        self._natural: dict[tuple[str, ...], Callable[..., Values]] = {}

    def _action_nodes(self) -> dict[str, tuple[int, ...]]:
        """Return the action indices of each observed node that soft actions change directly or through latents."""
        indices_by_name: dict[str, tuple[int, ...]] = {}
        latents = {v.name for v in self.variables if not v.observed}
        for v in self.variables:
            through_latents = {index for name in latents.intersection(v.parents) for index in indices_by_name[name]}
            indices_by_name[v.name] = (*v.actions, *sorted(through_latents.difference(v.actions)))
        return {name: indices for name, indices in indices_by_name.items() if indices and name not in latents}

    def propagate(self, noise: Draws, intervention: Intervention = NO_INTERVENTION) -> Values:
        """Return the values of all variables, latent ones included, in topological order; see :class:`System`."""
        return self._straight_line(noise, intervention.soft, intervention.hard)

    def natural_values(self, names: tuple[str, ...], noise: Draws) -> Values:
        if names not in self._natural:
            self._natural[names] = _compile(self.variables, self.full_diagram.ancestors(names), names)
        return self._natural[names](noise, (), {})

    @cached_property
    def parameter_dependent(self) -> frozenset[str]:
        return frozenset(self.full_diagram.descendants(v.name for v in self.variables if v.actions))

    @property
    def noise_of_reward(self) -> frozenset[str]:
        causes = {self.reward}
        for variable in reversed(self.variables):
            if variable.name in causes:
                causes.update(variable.parents)
        return frozenset(variable.name for variable in self.noisy if variable.name in causes)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.variables, self.reward)

    def __repr__(self) -> str:
        return f"StructuralCausalModel({self.diagram!r}, reward={self.reward!r})"


def _set_value(entry: tuple[Mask, Floats], mechanism: Callable[..., Floats], *causes: Floats) -> Floats:
    """Return the value of a hard intervention where its mask is true, and the mechanism's value elsewhere."""
    mask, value = entry
    if mask is True:
        return value
    try:
        natural = mechanism(*causes)
    except ArithmeticError:
        # Python's numbers raise this error where NumPy returns inf or nan. If the mask is all true, the mechanism's
        # value is not used.
        if not np.all(mask):
            raise
        natural = 0.0
    if isinstance(natural, complex) and np.all(mask):
        natural = 0.0
    return np.where(mask, value, natural)


def not_finite_error(name: str, problem: str) -> OperationError:
    """Return the error for a variable whose value is not a finite real number.

    Args:
        name: name of the variable.
        problem: what the mechanism does, such as ``"gives nan"``.
    """
    return OperationError(
        f"{name} must be a finite real number; its mechanism {problem}. It divides by zero, overflows, or takes a "
        "logarithm or a root of a negative number: correct the mechanism, or narrow the domains and the noise"
    )


def mechanism_error(name: str, error: Exception) -> OperationError:
    """Return the error for a variable whose mechanism raises an error that is not about the values of its causes."""
    return OperationError(f"the mechanism of {name} fails with {type(error).__name__}: {error}")


def _error_for(error: Exception, name: str, causes: Mapping[str, Floats]) -> Exception:
    """Return an error that names the variable, to raise in place of the mechanism's error."""
    if isinstance(error, CBOGymError):
        return error
    if isinstance(error, ArithmeticError):
        return not_finite_error(name, f"fails with {str(error)!r}")
    for cause, value in causes.items():
        if isinstance(value, complex):
            return not_finite_error(cause, f"gives {value}")
    if "complex" in str(error):
        return not_finite_error(name, f"fails with {str(error)!r}")
    return mechanism_error(name, error)


def _compile(
    variables: Sequence[Variable], computed: Collection[str], returned: Iterable[str]
) -> Callable[..., Values]:
    """Compile one function that evaluates mechanisms in order, given noise and interventions.

    A mechanism may have a method ``inline``, which returns the code of its value, given the code of its arguments; this
    saves a call.

    Args:
        variables: all variables, in topological order.
        computed: names of the variables whose mechanisms are evaluated.
        returned: names of those whose values are returned.
    """
    value_of = {variable.name: f"v{index}" for index, variable in enumerate(variables)}
    code = StraightLineCode(variables)
    for identifier, value in {**SCOPE, "set_value": _set_value, "error_for": _error_for}.items():
        code.bind(identifier, value)
    for i, variable in enumerate(variables):
        if variable.name not in computed:
            continue
        function = variable.mechanism.function if isinstance(variable.mechanism, Formula) else variable.mechanism
        mechanism, name = code.bind(f"mechanism_{i}", function), code.name_identifier(variable.name)
        causes = {parent: value_of[parent] for parent in variable.parents}
        inputs = [value_of[parent] for parent in variable.parents]
        inputs += [*(f"soft[{action}]" for action in variable.actions), code.noise(variable.name)]
        arguments = ", ".join(inputs)
        value = f"{mechanism}({arguments})"
        if function is own_noise:
            value = code.noise(variable.name)
        elif hasattr(variable.mechanism, "inline"):
            value = code.share_sums(variable.mechanism.inline(inputs)) or value
        code.add(
            "try:",
            f"    v{i} = ({value}) if {name} not in hard else set_value(hard[{name}], {mechanism}, {arguments})",
            "except Exception as error:",
            f"    raise error_for(error, {name}, {code.dictionary(causes)}) from error",
        )
    return code.compile({name: value_of[name] for name in returned})
