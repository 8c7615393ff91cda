"""Task: an agent's knowledge of its environment, one class per feedback mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NamedTuple

import numpy as np

from cbo_gym.actions.codec import Action, Codec
from cbo_gym.actions.costs import Costs
from cbo_gym.actions.domains import Interval
from cbo_gym.actions.spaces import Space
from cbo_gym.errors import HiddenGraphError
from cbo_gym.scm.components import Component
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.noise import Distribution, DistributionFamily
from cbo_gym.scm.scopes import Scope
from cbo_gym.scm.values import Composition

Observation = dict[str, np.ndarray]
# The info of a step, which agents can only read.
Info = Mapping[str, Any]
# The info of a step or the options of a reset, which environments fill.
StepInfo = dict[str, Any]


class Mode(StrEnum):
    """The feedback modes: the meaning of actions and observations. Each is a folder of ``cbo_gym.modes``."""

    SOFT = "soft"
    HARD = "hard"
    CONTEXTUAL = "contextual"
    AGGREGATED = "aggregated"
    MASKED = "masked"
    DISCRETE = "discrete"
    ADVERSARIAL = "adversarial"
    DYNAMIC = "dynamic"
    SUBSET = "subset"
    PARTIAL = "partial"


@dataclass(frozen=True)
class GraphKnowledge:
    """Knowledge of the causal graph: one diagram, true or wrong; several candidates; or only the variables' names.

    Args:
        nodes: the observed variables, the reward last.
        diagram: the known diagram, its nodes in topological order if it is acyclic; None if it is hidden.
        candidates: diagrams, among which the true one should be, in random order; may be empty.
    """

    nodes: tuple[str, ...]
    diagram: CausalDiagram | None = None
    candidates: tuple[CausalDiagram, ...] = ()

    @property
    def is_acyclic(self) -> bool:
        """Whether cycles are ruled out."""
        diagrams = [self.diagram] if self.diagram else self.candidates
        return bool(diagrams) and all(diagram.is_acyclic for diagram in diagrams)


class Round(NamedTuple):
    """One round: the action, the semi-bandit observation, and the reward.

    The reward is a number; with several objectives, an array.
    """

    action: Action
    observation: Observation
    reward: Any


@dataclass(frozen=True)
class Constraint:
    """A limit on the expected value of an observed node, E[node | action].

    Args:
        node: an observed variable, not the reward.
        side: ``"<="`` if the expected value must not exceed the threshold, ``">="`` if it must not fall below.
        threshold: finite threshold, in the node's units.
    """

    node: str
    side: Literal["<=", ">="]
    threshold: float

    def excess(self, expected: Any) -> Any:
        """Return by how much expected values (number, array or tensor) violate the limit; negative if they meet it."""
        return expected - self.threshold if self.side == "<=" else self.threshold - expected

    def __str__(self) -> str:
        return f"{self.node} {self.side} {self.threshold:g}"


@dataclass(frozen=True)
class Objective:
    """One of several quantities to maximise, or to minimise, in expectation.

    Args:
        name: an observed variable that cannot be set; or ``"cost"``, the cost of the round, if no variable has this
            name and the problem has costs.
        direction: the better direction. The reward of an objective to minimise is minus its value.
    """

    name: str
    direction: Literal["maximize", "minimize"] = "maximize"

    @property
    def sign(self) -> float:
        """The factor of the objective's value in the reward: 1 or -1."""
        return 1.0 if self.direction == "maximize" else -1.0

    @property
    def verb(self) -> str:
        """The direction as a verb: maximise or minimise."""
        return "maximise" if self.direction == "maximize" else "minimise"

    def __str__(self) -> str:
        return f"{self.direction} {self.name}"


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything that an agent knows at ``reset``, in every mode: no mechanism, no environment and no optimum.

    It is a copy, so that agents cannot change the environment through it.

    Args:
        env_id: id of the environment.
        mode: feedback mode.
        graph: knowledge of the causal graph.
        nodes: the observed variables in the order of ``observation["nodes"]``, the reward last.
        reward: name of the reward variable.
        horizon: number of rounds.
        action_space: action space of the environment; coordinates are in [0, 1].
        observation_space: observation space of the environment.
        codec: conversions of actions, for example to points of a unit box.
        noise: variable -> exogenous distribution, for methods whose paper takes it as known; None if it is unknown.
        initial_data: rounds before the first action, the same for all agents with one seed.
        constraints: limits that an action must meet in expectation.
        costs: costs of rounds, by the names of the variables that are set or of ``action_names``; None without costs.
            Initial rounds are free.
        objectives: the objectives in the order of the entries of a reward; empty if there is only one.
    """

    env_id: str
    mode: Mode
    graph: GraphKnowledge
    nodes: tuple[str, ...]
    reward: str
    horizon: int
    action_space: Space
    observation_space: Space
    codec: Codec
    noise: Mapping[str, Distribution] | None = None
    initial_data: tuple[Round, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    costs: Costs | None = None
    objectives: tuple[Objective, ...] = ()

    @property
    def diagram(self) -> CausalDiagram:
        """The known causal diagram over the observed variables; latent confounding as bidirected edges.

        Raises:
            HiddenGraphError: if the diagram is hidden. An agent that needs it at ``reset`` is skipped on this task.
        """
        if self.graph.diagram is None:
            count = len(self.graph.candidates)
            known = f"{count} candidate diagrams" if count else "the names of the variables"
            raise HiddenGraphError(
                f"this agent needs a causal diagram, and only {known} of {self.env_id} are known; give a diagram, or "
                "choose an agent that does without: Auto, CEO, CBO-U, GP-UCB, Optuna or Random"
            )
        return self.graph.diagram

    def _repr_html_(self) -> str:
        # Imported here, because isolated agents cannot import it.
        from cbo_gym.drawing.html import facts

        diagram, candidates = self.graph.diagram, self.graph.candidates
        graph_knowledge = f"{len(candidates)} candidates" if candidates else "-"
        rows: list[tuple[str, object]] = [
            ("mode", self.mode),
            ("rounds", self.horizon),
            ("observed variables", ", ".join(self.nodes)),
            ("reward", self.reward),
            ("actions", self.action_space),
            ("initial rounds", len(self.initial_data)),
            ("graph knowledge", "one diagram" if diagram else graph_knowledge),
        ]
        if self.constraints:
            rows.append(("constraints", ", ".join(map(str, self.constraints))))
        if self.objectives:
            rows.append(("objectives", ", ".join(map(str, self.objectives))))
        return facts(f"Task {self.env_id}", rows) + (diagram._repr_svg_() if diagram else "")


@dataclass(frozen=True, kw_only=True)
class ParametricTask(Task):
    """A task whose actions are parameters of mechanisms.

    Args:
        action_nodes: node -> indices of the action coordinates that enter its mechanism. In a separable SEM base arm
            i belongs to node i: ``nodes[i]`` is ``y[i]``, fed by ``observation["exogenous"][i]``.
        action_domains: native ``(low, high)`` of each coordinate.
        action_names: names of the coordinates, ``a0``, ``a1``, ... by default.
    """

    action_nodes: Mapping[str, tuple[int, ...]]
    action_domains: tuple[Interval, ...]
    action_names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SoftTask(ParametricTask):
    """Task of soft mode.

    Args:
        null_action: the action without an intervention.
        max_interventions: the number of coordinates that may differ from ``null_action``; None for all.
        composition: the reward as a known function of the other nodes, up to its own noise, or None.
    """

    null_action: tuple[float, ...]
    max_interventions: int | None = None
    composition: Composition | None = None


@dataclass(frozen=True, kw_only=True)
class SubsetTask(SoftTask):
    """Task of subset mode: soft actions whose coordinates are 0 or 1."""


# Largest difference of equal parameters in partial mode, as a share of their domain.
SAME_INPUT = 1e-9


@dataclass(frozen=True, kw_only=True)
class PartialTask(SoftTask):
    """Task of partial mode. ``costs.variables`` are the prices of the nodes; nodes without a price are free.

    Args:
        unfinished: reward of a round that does not buy the reward.
        parts: node -> native ``(low, high)`` of its values as a bought part; empty if parts must be made.
        budget: cost at which purchases end; None without such a limit.
    """

    unfinished: float
    parts: Mapping[str, Interval]
    budget: float | None = None


@dataclass(frozen=True, kw_only=True)
class AggregatedTask(ParametricTask):
    """Task of aggregated mode.

    Args:
        arity: the number K of parts into which a cell is split.
        representative_points: the number S of points over which feedback is the mean.
        integral: whether feedback is the mean over the whole cell instead of the mean over these points.
        kernel: ``(lengthscale, variance)`` of the squared-exponential kernel of a zero-mean Gaussian process over
            [0, 1] coordinates from which the reward function is drawn, if the method's paper takes it as known; else
            None.
    """

    arity: int = 2
    representative_points: int = 1
    integral: bool = False
    kernel: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class MaskedTask(ParametricTask):
    """Task of masked mode.

    Args:
        super_arm_size: the largest number s of base arms in a super arm; N is ``len(action_domains)``.
        signal_range: an interval that contains the signals b of all base arms.
        signal_family: family of the signals' distributions, and the ranges from which their parameters were drawn, if
            the method's paper takes them as a known prior; else None.
        components: one function of each family in the equations ``y = F(y) + z``, up to factors (agents know neither
            the factors nor the family of an edge); empty if the equations have another form.
        composition: the reward as a known function of the other nodes, or None; for a separable SEM the payoff h,
            which is always known.
    """

    super_arm_size: int
    signal_range: Interval = (0.0, 1.0)
    signal_family: DistributionFamily | None = None
    components: tuple[Component, ...] = ()
    composition: Composition | None = None


@dataclass(frozen=True, kw_only=True)
class ChoiceTask(Task):
    """A task whose actions choose a set of variables and their values.

    Args:
        manipulable: variable -> native ``(low, high)``, in the order of the action's ``values``.
    """

    manipulable: Mapping[str, Interval]


@dataclass(frozen=True, kw_only=True)
class HardTask(ChoiceTask):
    """Task of hard mode.

    Args:
        targets: the target sets, in the order of the action's ``target``; usually one is empty, to only observe.
    """

    targets: tuple[frozenset[str], ...]


@dataclass(frozen=True, kw_only=True)
class ContextualTask(ChoiceTask):
    """Task of contextual mode.

    Args:
        contexts: the context variables, in the order of ``observation["context"]``.
        scopes: the scopes, in the order of the action's ``scope``: for each variable that is set the contexts that its
            value may depend on.
    """

    contexts: tuple[str, ...]
    scopes: tuple[Scope, ...]


@dataclass(frozen=True, kw_only=True)
class DiscreteTask(Task):
    """Task of discrete mode. The reward is in [0, 1].

    Args:
        arms: the interventions, variable -> native value, in the order of the actions; ``{}`` only observes.
    """

    arms: tuple[Mapping[str, float], ...]


@dataclass(frozen=True, kw_only=True)
class AdversarialTask(SoftTask):
    """Task of adversarial mode. The reward is in [0, 1], as the bounds of multiplicative weights require.

    Args:
        adversary_nodes: node -> indices of the adversary's coordinates that enter its mechanism, in the order of
            ``observation["adversary"]``.
        adversary_domains: native ``(low, high)`` of each of these coordinates.
        adversary_names: names of these coordinates.
        levels: number of values of each coordinate of an action: k / (levels - 1) for k = 0 .. levels - 1.
    """

    adversary_nodes: Mapping[str, tuple[int, ...]]
    adversary_domains: tuple[Interval, ...]
    adversary_names: tuple[str, ...]
    levels: int


@dataclass(frozen=True, kw_only=True)
class DynamicTask(ChoiceTask):
    """Task of dynamic mode. ``graph`` and ``nodes`` describe one slice; in slice t a variable ``X`` is named ``X_t``.

    Args:
        targets: the target sets, in the order of the action's ``target``; one is empty.
        slices: the number T of slices.
        trials: the number K of rounds in a slice, the last of which is implemented.
        unrolled: the causal diagram over the variables of all slices.
        observational: variable of a slice, ``X_t`` -> its values in time series without interventions, arrays of equal
            length; slices that were not measured are left out.
    """

    targets: tuple[frozenset[str], ...]
    slices: int
    trials: int
    unrolled: CausalDiagram
    observational: Mapping[str, np.ndarray]
