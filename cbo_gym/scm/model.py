"""Structural causal models with vectorised ancestral sampling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.intervention import Intervention
from cbo_gym.scm.noise import Distribution, Zero

Values = dict[str, Any]
Noise = tuple[Any, ...]
_NO_INTERVENTION = Intervention()


def own_noise(u: Any) -> Any:
    """The mechanism of a variable without parents and actions: its own exogenous variable."""
    return u


@dataclass(frozen=True)
class Variable:
    """One endogenous (or latent) variable and its mechanism.

    Args:
        name: unique in the model.
        mechanism: called as ``mechanism(*parent values, *action values, noise)``. It must be built from arithmetic
            and NumPy ufuncs, so that the same code serves Python floats and arrays that broadcast together.
        parents: names of its direct causes, in the order in which the mechanism takes them.
        actions: indices of the action coordinates (soft parameters) that the mechanism takes after the parents.
        noise: distribution of its own exogenous variable.
        observed: False for a latent variable, which no agent sees.
    """

    name: str
    mechanism: Callable[..., Any]
    parents: tuple[str, ...] = ()
    actions: tuple[int, ...] = ()
    noise: Distribution = field(default_factory=Zero)
    observed: bool = True


class StructuralCausalModel:
    """Variables, their mechanisms and noise, and which of them is the reward.

    Args:
        variables: in any order.
        reward: name of the reward variable: observed, without children.

    Attributes:
        variables: in topological order, latent ones included, the reward last.
        nodes: names of the observed variables in that order, the reward last.
        action_dim: number of action coordinates (soft parameters), q.
        action_nodes: observed variable -> the action coordinates that enter its mechanism, directly or by latent
            variables alone.
        noisy: the variables whose exogenous part is not constant, in topological order.

    Raises:
        ValueError: for a repeated name, an unknown parent, a cycle, a reward that is missing, latent or has
            children, or action indices with gaps.
    """

    def __init__(self, variables: Sequence[Variable], reward: str) -> None:
        by_name = {variable.name: variable for variable in variables}
        edges = [(parent, v.name) for v in variables for parent in v.parents]
        #: the diagram with the latent variables in it
        self.full_diagram = CausalDiagram([v.name for v in variables], edges)
        if reward not in by_name:
            raise ValueError(f"the reward {reward!r} is none of the variables {list(by_name)}")
        if not by_name[reward].observed:
            raise ValueError(f"the reward {reward!r} must be an observed variable")
        if children := self.full_diagram.children(reward):
            raise ValueError(f"the reward {reward!r} must have no children; it has {children}")
        order = [name for name in self.full_diagram.topological_order if name != reward]
        self.reward = reward
        self.variables = tuple(by_name[name] for name in [*order, reward])
        self.nodes = tuple(v.name for v in self.variables if v.observed)
        used = sorted({index for v in variables for index in v.actions})
        if used != list(range(len(used))):
            raise ValueError(f"action indices must be 0..q-1 without gaps; the mechanisms use {used}")
        self.action_dim = len(used)
        self.action_nodes = {
            v.name: own for v in self.variables if v.observed and (own := self._actions_of(v, by_name))
        }
        latents = [v.name for v in self.variables if not v.observed]
        projected = self.full_diagram.latent_projection(latents)
        #: the diagram over the observed variables, latent ones projected out
        self.diagram = CausalDiagram(self.nodes, projected.directed, ((min(p), max(p)) for p in projected.bidirected))
        self.noisy = tuple(v for v in self.variables if not isinstance(v.noise, Zero))
        self._straight_line = _compile(self.variables)

    def _actions_of(self, variable: Variable, by_name: Mapping[str, Variable]) -> tuple[int, ...]:
        hidden = [by_name[name] for name in variable.parents if not by_name[name].observed]
        through = {index for latent in hidden for index in self._actions_of(latent, by_name)}
        return (*variable.actions, *sorted(through.difference(variable.actions)))

    def draw_noise(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Noise:
        """Independent exogenous draws: for each of ``noisy`` an array of shape ``size``."""
        return tuple(v.noise.sample(rng, size) for v in self.noisy)

    def noise_from_uniform(self, uniforms: np.ndarray) -> Noise:
        """Exogenous draws from numbers in (0, 1) of shape ``(len(noisy), ...)``, for quasi-Monte Carlo."""
        return tuple(v.noise.from_uniform(row) for v, row in zip(self.noisy, uniforms, strict=True))

    def propagate(self, noise: Noise, intervention: Intervention = _NO_INTERVENTION) -> Values:
        """Values of all variables, latent ones included, by name in topological order.

        ``noise`` (as from :meth:`draw_noise`) and ``intervention`` broadcast together; with scalars in, scalars come
        out. Nothing is validated here, since the environments call it once a step; :meth:`sample` validates.
        """
        return self._straight_line(noise, intervention.soft, intervention.hard)

    def sample(self, n: int, rng: np.random.Generator, intervention: Intervention | None = None) -> Values:
        """``n`` independent samples under one intervention, or one under each of a batch of ``n``.

        Args:
            n: number of samples.
            rng: source of the exogenous noise.
            intervention: of batch shape ``()`` or ``(n,)``; None leaves the system alone (only for models
                without soft parameters).

        Returns:
            name -> array of shape ``(n,)``, for every variable in topological order.

        Raises:
            ValueError: if ``n`` or the intervention does not fit the model.
        """
        if n < 1:
            raise ValueError(f"n must be at least 1; given {n}")
        checked = self.check(intervention or _NO_INTERVENTION, batch_shape=(n,))
        values = self.propagate(self.draw_noise(rng, n), checked)
        return {name: np.broadcast_to(value, (n,)) for name, value in values.items()}

    def check(self, intervention: Intervention, batch_shape: tuple[int, ...]) -> Intervention:
        """Return ``intervention`` if it fits the model and broadcasts to ``batch_shape``.

        Raises:
            ValueError: naming the variable or coordinate at fault.
        """
        if len(intervention.soft) != self.action_dim:
            raise ValueError(f"the model takes {self.action_dim} soft parameters; given {len(intervention.soft)}")
        known = [name for name in self.nodes if name != self.reward]
        unknown = sorted(set(intervention.hard) - set(known))
        if unknown:
            raise ValueError(f"cannot set {unknown}; a hard intervention may set {known}")
        named = {f"soft parameter {i}": column for i, column in enumerate(intervention.soft)}
        named |= {f"the value of {name}": value for name, (_, value) in intervention.hard.items()}
        for what, column in named.items():
            array = np.asarray(column, dtype=float)
            if not np.all(np.isfinite(array)):
                raise ValueError(f"{what} must be finite; given {array}")
        named |= {f"the mask of {name}": mask for name, (mask, _) in intervention.hard.items()}
        for what, column in named.items():
            if not _broadcasts_to(np.shape(column), batch_shape):
                raise ValueError(f"{what} has shape {np.shape(column)}, which does not fit {batch_shape}")
        return intervention

    def stack(self, values: Mapping[str, Any]) -> np.ndarray:
        """The observed variables as one array of shape ``(..., len(nodes))``."""
        columns = np.broadcast_arrays(*[values[name] for name in self.nodes])
        return np.stack(columns, axis=-1)

    def __reduce__(self) -> tuple[Any, ...]:
        return StructuralCausalModel, (self.variables, self.reward)

    def __repr__(self) -> str:
        return f"StructuralCausalModel({self.diagram!r}, reward={self.reward!r})"


def _broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def _set_value(entry: tuple[Any, Any], mechanism: Callable[..., Any], *causes: Any) -> Any:
    mask, value = entry
    return value if mask is True else np.where(mask, value, mechanism(*causes))


def _compile(variables: Sequence[Variable]) -> Callable[..., Values]:
    """One straight-line function for all mechanisms, written out as ``dataclasses`` writes ``__init__``.

    A generic loop over the variables costs two to three times the mechanisms themselves when one action is
    evaluated, which is every step of an environment. Only indices go into the source text, never names.
    """
    place = {variable.name: index for index, variable in enumerate(variables)}
    scope: dict[str, Any] = {"set_value": _set_value}
    lines = ["def straight_line(noise, soft, hard):"]
    draws = 0
    for i, variable in enumerate(variables):
        scope[f"mechanism_{i}"], scope[f"name_{i}"] = variable.mechanism, variable.name
        causes = [f"v{place[parent]}" for parent in variable.parents]
        causes += [f"soft[{action}]" for action in variable.actions]
        causes.append("0.0" if isinstance(variable.noise, Zero) else f"noise[{draws}]")
        draws += not isinstance(variable.noise, Zero)
        call = ", ".join(causes)
        lines.append(
            f"    v{i} = mechanism_{i}({call}) if name_{i} not in hard"
            f" else set_value(hard[name_{i}], mechanism_{i}, {call})"
        )
    items = ", ".join(f"name_{i}: v{i}" for i in range(len(variables)))
    lines.append(f"    return {{{items}}}")
    exec("\n".join(lines), scope)
    return scope["straight_line"]
