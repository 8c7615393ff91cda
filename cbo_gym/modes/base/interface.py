"""Interface: what a mode's actions and observations are and mean, without the mechanisms that play a round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, ClassVar, NamedTuple

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction

from cbo_gym.actions import Codec, Costs, Interval, Space, TypedDomain
from cbo_gym.actions.codec import Actions
from cbo_gym.actions.costs import Changed
from cbo_gym.actions.reading import copy_action
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.modes.base.pricing import Priceable, fit_costs
from cbo_gym.problems.base import ModeData, ProblemStatement
from cbo_gym.problems.transform import Record, Transform
from cbo_gym.scm import Distribution, Floats, Intervention
from cbo_gym.scm.system import Structure, Values
from cbo_gym.task import Action, GraphKnowledge, Mode, Observation, Task

# An intervention in native units, by name.
Description = dict[str, Any]


class Entry(NamedTuple):
    """The effect of an action at a node, for pictures.

    Attributes:
        label: description of the effect.
        widest: a label at least as long as that of any other action.
        used: whether the action has an effect there.
    """

    label: str
    widest: str
    used: bool = True


class Region(NamedTuple):
    """A part of the action space for the search of an optimum: a unit box of ``dim`` coordinates.

    ``to_actions`` maps points of shape ``(n, dim)`` to a batch of ``n`` actions.
    """

    dim: int
    to_actions: Callable[[np.ndarray], Actions]


class Interface(ABC):
    """One problem in one mode, as agents and studies know it: spaces, the meaning of actions and observations.

    It needs the names, the domains and the knowledge of the diagram, but no mechanism, and has no state.

    Args:
        problem: the system and its possible actions.

    Attributes:
        codec: conversions of actions.
        action_space: space of one action.
        observation_space: space of the observation of one round.
        domains: native units of the action's coordinates.
        knowledge: the agents' knowledge of the causal graph.
        nodes: the observed variables in the order of observations, the reward last.
        costs: costs of rounds, by the mode's names of items; None without costs.

    Raises:
        ArgumentError: if the problem lacks what the mode needs.
    """

    mode: ClassVar[Mode]
    #: Class of the mode's tasks.
    task_class: ClassVar[type[Task]]
    #: Number of axes before the batch axis of an intervention's arrays; :meth:`Dynamics.play` averages over them.
    averaged_axes: ClassVar[int] = 0
    #: Whether there is an observation before a round, see :meth:`Dynamics.before`.
    observes_before: ClassVar[bool] = False
    #: Whether a round depends on earlier ones, see :meth:`Dynamics.start`.
    remembers: ClassVar[bool] = False
    #: Whether actions may have limits.
    takes_limits: ClassVar[bool] = False
    #: Whether a round may have several objectives.
    several_objectives: ClassVar[bool] = False
    #: What a trial of a study sets, in words; empty if studies cannot have the mode.
    trial_description: ClassVar[str] = ""
    #: Why a study needs a diagram; empty if it needs none.
    diagram_reason: ClassVar[str] = ""
    #: Name that no parameter of a study may have -> the meaning of this name in a trial.
    reserved_names: ClassVar[Mapping[str, str]] = {}
    #: Whether actions set variables; if not, they are parameters of mechanisms.
    sets_variables: ClassVar[bool] = False
    #: Whether rewards must be in [0, 1], so that a study needs their range.
    unit_rewards: ClassVar[bool] = False
    #: Reward of a round in which the reward variable is not observed; None if every round shows it.
    unfinished: float | None = None
    #: Labels in the keys of pictures: of the effect of an action, of a variable that is set, and of an unused effect.
    effect_label: ClassVar[str] = "parameter"
    set_label: ClassVar[str] = "set this round"
    unused_label: ClassVar[str] = ""
    #: Note on the soft parameters, below equations.
    parameters_note: ClassVar[str] = "Parameters are in native units."
    #: Noun for a count of random initial rounds, such as "a target set"; empty if the count is a total.
    random_rounds_of: ClassVar[str] = ""
    #: Default numbers of observational and random initial rounds, see :meth:`initial_actions`
    default_initial_data: ClassVar[tuple[int, int | None]] = (0, 0)

    problem: ProblemStatement
    scm: Structure

    def __init__(self, problem: ProblemStatement) -> None:
        if problem.outcomes.constraints and (self.observes_before or self.remembers):
            raise ArgumentError(
                f"constraints are on E[node | action]; in {self.mode} mode the effect of an action depends on the "
                f"round as well, so {problem.name} cannot have any"
            )
        if problem.limits and not self.takes_limits:
            raise ArgumentError(
                f"actions have limits in soft and hard mode alone; {problem.name} has some, and the mode is {self.mode}"
            )
        self.problem = problem
        self.scm = problem.scm
        self.knowledge = problem.knowledge or self.whole_graph()
        self.nodes = self.knowledge.nodes
        self.codec = self.make_codec()
        self.domains = self.codec.domains
        self.costs: Costs | None = None
        labelled = [name for name, domain in self.domains.typed.items() if domain.categories]
        constrained = [constraint.node for constraint in problem.outcomes.constraints] if self.sets_variables else []
        if wrong := [name for name in constrained if name in labelled]:
            raise ArgumentError(f"{problem.name}: a constraint is on a number, and {wrong[0]} is a category")
        if problem.outcomes.costs is not None:
            subject = f"{problem.name} in {self.mode} mode"
            self.costs = fit_costs(problem.outcomes.costs, subject, self.priceable(), self.scm.nodes, self.nodes)
            if wrong := [name for name in self.costs.per_unit if name in labelled]:
                raise ArgumentError(f"{subject}: costs cannot have per_unit of {wrong[0]}, because it is a category")
        self.action_space: Space = self.codec.space
        shapes = {key: value.shape for key, value in self.empty_observation().items()}
        self.observation_space = spaces.Dict(
            {key: spaces.Box(-np.inf, np.inf, shape, dtype=np.float64) for key, shape in shapes.items()}
        )

    def whole_graph(self) -> GraphKnowledge:
        """Return complete knowledge of the causal graph."""
        return GraphKnowledge(self.scm.nodes, self.scm.diagram)

    @classmethod
    def keywords(cls) -> list[str]:
        """Return the names of the mode's own keyword arguments."""
        parameters = signature(cls).parameters.values()
        return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]

    @classmethod
    def study_data(cls, lowest: float) -> Sequence[ModeData]:
        """Return the data of the problem that every study has.

        Args:
            lowest: a number below all rewards.
        """
        return ()

    @property
    def priced_items(self) -> Sequence[str]:
        """Items whose price in a study with costs is 1 by default: the variables and parameters that can be set."""
        return [*self.problem.manipulable, *self.problem.action_names]

    @property
    def context_names(self) -> Sequence[str]:
        """Names of the context variables, which are observed before a round."""
        return ()

    @property
    def manipulable(self) -> Mapping[str, Interval]:
        """Variable -> native ``(low, high)`` of its hard interventions."""
        return self.problem.manipulable

    @property
    def symbols(self) -> Sequence[str]:
        """Symbols of the soft parameters in equations, different from all names of variables."""
        return [f"a({name})" if name in self.scm.nodes else name for name in self.problem.domains.names]

    @property
    def coordinate_labels(self) -> Sequence[tuple[str, str]]:
        """Name and range of each coordinate of ``domains``, in words."""
        return [
            (name, domain.in_words() if isinstance(domain, TypedDomain) else f"{domain[0]:g} to {domain[1]:g}")
            for name, domain in zip(self.domains.names, self.domains.intervals, strict=True)
        ]

    @abstractmethod
    def make_codec(self) -> Codec:
        """Return the mode's codec with its action space; raise ArgumentError if the problem lacks what the mode needs.

        It is called once, when ``problem`` and ``scm`` are set.
        """

    def read(self, action: Action) -> Action:
        """Return a validated copy of one action, so that later changes of the caller's object have no effect.

        Raises:
            gymnasium.error.InvalidAction: if it is not an element of the action space.
        """
        copied = copy_action(self.action_space, action)
        self.decode(copied)
        return copied

    def read_batch(self, actions: Actions) -> Actions:
        """Return a validated copy of a batch: an element of the batched action space."""
        copied = copy_action(self.action_space, actions)
        self.decode_batch(copied)
        return copied

    def read_recommendation(self, recommended: Any) -> Any:
        """Return a validated copy of a recommendation: an action; with several objectives a list of at least one."""
        if not self.problem.outcomes.objectives:
            return self.read(recommended)
        if not isinstance(recommended, list | tuple) or not recommended:
            raise InvalidAction(
                "with several objectives a recommendation is a list of the actions of a Pareto set, at least one; "
                f"given {short_repr(recommended)}"
            )
        return [self.read(action) for action in recommended]

    @abstractmethod
    def decode(self, action: Action) -> Intervention:
        """Return the intervention of one action, in native units; raise InvalidAction if it is not in the space."""

    @abstractmethod
    def decode_batch(self, actions: Actions) -> Intervention:
        """Return the interventions of a batch: an element of the batched action space."""

    def require_inside(self, inside: Any, description: str, **columns: np.ndarray) -> None:
        """Raise InvalidAction for the first row of a batch that is not in the action space.

        Args:
            inside: whether each action is in the space.
            description: how the message names an action, with ``{}`` for its row.
            columns: entry of the actions -> its numbers, with one row for each action.
        """
        if not inside.all():
            row = int(np.argmin(inside))
            values = ", ".join(f"{name} {short_repr(column[row].tolist())}" for name, column in columns.items())
            raise InvalidAction(f"{description.format(row)} is outside {self.action_space}; given {values}")

    @abstractmethod
    def describe(self, intervention: Intervention) -> Description:
        """Return the intervention in native units, by variable or parameter name."""

    def describe_batch(self, intervention: Intervention) -> Description:
        """Return new arrays for a batch by name, with ``_name`` masks as in Gymnasium's vector infos."""
        info: Description = {}
        for name, value in self.describe(intervention).items():
            info[name] = np.stack(value, axis=-1) if isinstance(value, tuple) else np.array(value)
            info[f"_{name}"] = np.ones(len(info[name]), dtype=bool)
        return info

    def priceable(self) -> Priceable:
        """Return the items of the mode's actions that may have a price; raise ArgumentError if there are none."""
        raise ArgumentError(f"{self.problem.name}: {self.mode} mode has no costs")

    def changed_items(self, intervention: Intervention) -> Changed:
        """Return the items with a possible price that an action changes: item -> ``(mask, native value)``."""
        return {}

    def cost(self, intervention: Intervention) -> Floats:
        """Return the cost of rounds: an array of the batch's shape, or a number if all cost the same.

        Args:
            intervention: result of :meth:`decode` or :meth:`decode_batch`.
        """
        assert self.costs is not None, "the problem has no costs"
        return self.costs.of(self.changed_items(intervention))

    def after(self, nodes: np.ndarray, values: Values) -> Observation:
        """Return the observation after rounds.

        Args:
            nodes: the observed variables, in the order of ``self.nodes``, shape ``(..., n)``.
            values: all variables by name, latent ones included, of the rounds' shape; result of :meth:`play`.
        """
        return {"nodes": nodes}

    def empty_observation(self) -> Observation:
        """Return the observation before the first round: zeros."""
        return self.after(np.zeros(len(self.nodes)), defaultdict(float))

    def products(self, action: Action) -> Mapping[str, Sequence[int]]:
        """Return the variables that an action of partial mode makes; empty in other modes, whose rounds share nothing.

        Returns:
            variable -> the coordinates of its inputs and those of its causes, in topological order, if no earlier round
            has made any variable. The last one is the variable that a round with this action must show.
        """
        return {}

    @abstractmethod
    def affected_nodes(self) -> dict[str, str]:
        """Return the nodes that actions affect directly, and how, for pictures and tables: ``{"X": "do"}``."""

    def node_entries(self, intervention: Intervention | None, values: Mapping[str, Floats]) -> dict[str, list[Entry]]:
        """Return the effects of an action on the mechanisms, by node; empty if actions set variables.

        Args:
            intervention: intervention of the action; None before the first.
            values: all variables by name in the round, latent ones included.
        """
        return {}

    @abstractmethod
    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """Return a batch of actions for the initial data.

        Args:
            rng: source of the random actions.
            observational: number of rounds without intervention.
            random: number of random interventions (hard mode: of each target set); None for the mode's default.
        """

    @abstractmethod
    def regions(self) -> list[Region]:
        """Return regions that cover the action space, for the oracle's search."""

    def all_actions(self) -> np.ndarray | None:
        """Return all actions as one array if they can be enumerated; else ``None``."""
        return None

    @abstractmethod
    def task_fields(self) -> dict[str, Any]:
        """Return the mode's own fields of ``task_class``."""

    def transform_record(self, transform: Transform, record: Record) -> Record:
        """Return an action of the published problem, as the registry writes it, in an instance of the problem."""
        return transform.record(record)

    def exogenous(self) -> dict[str, Distribution]:
        """Return observed variable -> the distribution of its noise."""
        return self.scm.noise_of_nodes()
