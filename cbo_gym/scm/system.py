"""Base classes of structural causal models and separable SEMs: what every system of variables can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.intervention import Intervention
from cbo_gym.scm.noise import Distribution, Zero
from cbo_gym.scm.values import Floats

Values = dict[str, Floats]
# Draws of the noisy variables.
Draws = tuple[Floats, ...]
NO_INTERVENTION = Intervention()


def own_noise(u: Floats) -> Floats:
    """Return the exogenous variable: the mechanism of a variable without parents and actions."""
    return u


@dataclass(frozen=True)
class Variable:
    """One endogenous (or latent) variable and its mechanism.

    Args:
        name: name of the variable, unique in the model.
        mechanism: called as ``mechanism(*parent values, *action values, noise)``; arithmetic and NumPy ufuncs, so that
            it takes floats and arrays that broadcast together.
        parents: names of its direct causes, in the order of the mechanism's arguments.
        actions: indices of the action coordinates (soft parameters), the arguments after the parents.
        noise: distribution of its own exogenous variable.
        observed: False for a latent variable, which no agent sees.
        idle_parents: further parents in the diagram that the mechanism does not take (effects that are only possible).
    """

    name: str
    mechanism: Callable[..., Floats]
    parents: tuple[str, ...] = ()
    actions: tuple[int, ...] = ()
    noise: Distribution = field(default_factory=Zero)
    observed: bool = True
    idle_parents: tuple[str, ...] = ()


class Structure(ABC):
    """The description of a system without its mechanisms.

    Attributes:
        nodes: names of the observed variables, the reward last.
        reward: name of the reward variable.
        diagram: the causal diagram over the observed variables, latent ones projected out.
        action_dim: number of action coordinates (soft parameters), q.
        action_nodes: observed variable -> the action coordinates that enter its mechanism, directly or only through
            latent variables.
    """

    nodes: tuple[str, ...]
    reward: str
    diagram: CausalDiagram
    action_dim: int
    action_nodes: Mapping[str, tuple[int, ...]]

    @property
    def all_names(self) -> Sequence[str]:
        """Names of all variables, latent ones included."""
        return self.nodes

    @abstractmethod
    def noise_of_nodes(self) -> dict[str, Distribution]:
        """Return a dictionary from observed variables to the distributions of their own noise."""


class System(Structure):
    """Variables determined by exogenous noise and an intervention; one of them is the reward.

    Attributes:
        variables: variables with an exogenous part, constant ones included.
        noisy: variables whose exogenous part is not constant, in the order of the draws.
    """

    variables: tuple[Variable, ...]
    noisy: tuple[Variable, ...]

    @property
    def all_names(self) -> Sequence[str]:
        return [variable.name for variable in self.variables]

    def noise_of_nodes(self) -> dict[str, Distribution]:
        return {variable.name: variable.noise for variable in self.variables if variable.observed}

    @abstractmethod
    def propagate(self, noise: Draws, intervention: Intervention = NO_INTERVENTION) -> Values:
        """Return the values of all variables, latent ones included, by name.

        ``noise`` (as from :meth:`draw_noise`) and ``intervention`` broadcast together; scalars give scalars. Nothing is
        validated, because environments call it in every step; :meth:`sample` validates.
        """

    def natural_values(self, names: tuple[str, ...], noise: Draws) -> Values:
        """Return the values of some variables without intervention, in the order of ``names``."""
        values = self.propagate(noise)
        return {name: values[name] for name in names}

    @property
    def parameter_dependent(self) -> Collection[str]:
        """Variables whose values may depend on the soft parameters."""
        return self.nodes

    @property
    def noise_of_reward(self) -> frozenset[str]:
        """Names of the noisy variables on whose draws the reward may depend."""
        return frozenset(variable.name for variable in self.noisy)

    def draw_noise(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> tuple[np.ndarray, ...]:
        """Return independent exogenous draws, an array of shape ``size`` for each of ``noisy``."""
        return tuple(v.noise.sample(rng, size) for v in self.noisy)

    def noise_from_uniform(self, uniforms: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return exogenous draws for numbers in (0, 1) of shape ``(len(noisy), ...)``, for quasi-Monte Carlo."""
        return tuple(v.noise.from_uniform(row) for v, row in zip(self.noisy, uniforms, strict=True))

    def sample(
        self, n: int, rng: np.random.Generator, intervention: Intervention | None = None
    ) -> dict[str, np.ndarray]:
        """Return ``n`` independent samples under one intervention, or one under each of a batch of ``n``.

        Args:
            n: number of samples.
            rng: source of the exogenous noise.
            intervention: intervention of batch shape ``()`` or ``(n,)``; None for no intervention (only for systems
                without soft parameters).

        Returns:
            name -> array of shape ``(n,)``, for every variable.

        Raises:
            ArgumentError: if ``n`` or the intervention does not fit the system.
        """
        if n < 1:
            raise ArgumentError(f"n must be at least 1; given {n}")
        checked = self.check(intervention or NO_INTERVENTION, batch_shape=(n,))
        values = self.propagate(self.draw_noise(rng, n), checked)
        return {name: np.broadcast_to(value, (n,)) for name, value in values.items()}

    def check(self, intervention: Intervention, batch_shape: tuple[int, ...]) -> Intervention:
        """Return ``intervention`` if it fits the system and broadcasts to ``batch_shape``.

        Raises:
            ArgumentError: if it does not, naming the variable or coordinate at fault.
        """
        if len(intervention.soft) != self.action_dim:
            raise ArgumentError(f"the model takes {self.action_dim} soft parameters; given {len(intervention.soft)}")
        settable = [name for name in self.nodes if name != self.reward]
        if unknown := sorted(set(intervention.hard).difference(settable)):
            raise ArgumentError(f"cannot set {unknown}; a hard intervention may set {settable}")
        columns = {f"soft parameter {i}": column for i, column in enumerate(intervention.soft)}
        columns |= {f"the value of {name}": value for name, (_, value) in intervention.hard.items()}
        for label, column in columns.items():
            array = np.asarray(column, dtype=float)
            if not np.all(np.isfinite(array)):
                raise ArgumentError(f"{label} must be finite; given {array}")
        columns |= {f"the mask of {name}": mask for name, (mask, _) in intervention.hard.items()}
        for label, column in columns.items():
            if not _broadcasts_to(np.shape(column), batch_shape):
                raise ArgumentError(f"{label} has shape {np.shape(column)}, which does not fit {batch_shape}")
        return intervention

    def stack(self, values: Mapping[str, Floats], names: Sequence[str] | None = None) -> np.ndarray:
        """Return the observed variables, or those in ``names``, as one array of shape ``(..., number of names)``."""
        columns = np.broadcast_arrays(*[values[name] for name in names or self.nodes])
        return np.stack(columns, axis=-1)


def _broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False
