"""Interface: what an action means and what is seen of a round. Feedback: an interface whose rounds can be played."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction

from cbo_gym.actions import Codec, Costs, Space
from cbo_gym.actions.codec import Actions
from cbo_gym.actions.costs import Changed
from cbo_gym.actions.reading import own_copy
from cbo_gym.errors import ArgumentError, shown
from cbo_gym.feedback.pricing import Priceable, fitted
from cbo_gym.problems import Problem
from cbo_gym.problems.base import ProblemStatement
from cbo_gym.scm import Distribution, Floats, Intervention, System
from cbo_gym.scm.system import Draws, Structure, Values
from cbo_gym.task import Action, GraphKnowledge, Mode, Observation, Task

Description = dict[str, Any]  # what was done, in native units by name
Memory = Any  # of a mode's own making; never changed, so that whoever keeps one may go back to it


class Entry(NamedTuple):
    """The effect of an action at a node, for pictures.

    ``text`` says it, ``widest`` is at least as long as any other action's, and ``used`` is False where nothing is done.
    """

    text: str
    widest: str
    used: bool = True


class Region(NamedTuple):
    """A part of the action space in which an optimum is searched for: a unit box of ``dim`` coordinates.

    ``to_actions`` maps points of shape ``(n, dim)`` to a batch of ``n`` actions.
    """

    dim: int
    to_actions: Callable[[np.ndarray], Actions]


class Interface(ABC):
    """One problem in one mode, as an agent and a study know it: spaces, the meaning of actions, what is seen.

    It needs the names, the domains and what is known of the diagram, but no mechanism; it keeps no state.

    Args:
        problem: the system and what may be done to it.

    Attributes:
        codec: between actions and their other forms.
        action_space: of one action.
        observation_space: of what is seen of one round.
        domains: native units of the action's coordinates.
        told: what agents are told of the causal graph.
        nodes: the observed variables in the order in which they are seen, the reward last.
        costs: what rounds cost, in the names of the mode's own; None where nothing is paid.

    Raises:
        ArgumentError: if the problem lacks what the mode needs.
    """

    mode: ClassVar[Mode]
    #: what agents are told of the mode
    task_class: ClassVar[type[Task]]
    #: axes of an intervention's entries in front of the batch's; :meth:`play` reduces them
    own_axes: ClassVar[int] = 0
    #: whether something of a round is seen before it is played, see :meth:`before`
    looks_ahead: ClassVar[bool] = False
    #: whether what a round gives depends on those before it, see :meth:`start`
    remembers: ClassVar[bool] = False
    #: whether a round may have several objectives
    several_objectives: ClassVar[bool] = False
    #: numbers of observational and random rounds that a problem of the user's own starts with; None as in
    #: :meth:`initial_actions`
    usual_initial_data: ClassVar[tuple[int, int | None]] = (0, 0)

    problem: ProblemStatement
    scm: Structure

    def __init__(self, problem: ProblemStatement) -> None:
        if problem.outcomes.constraints and (self.looks_ahead or self.remembers):
            raise ArgumentError(
                f"constraints are on E[node | action]; in {self.mode} mode what an action does depends on the round as "
                f"well, so none can be put on {problem.name}"
            )
        self.problem = problem
        self.scm = problem.scm
        self.told = problem.told or self.whole_graph()
        self.nodes = self.told.nodes
        self.codec = self.make_codec()
        self.domains = self.codec.domains
        self.costs: Costs | None = None
        if problem.outcomes.costs is not None:
            where = f"{problem.name} in {self.mode} mode"
            self.costs = fitted(problem.outcomes.costs, where, self.priceable(), self.scm.nodes, self.nodes)
        self.action_space: Space = self.codec.space
        shapes = {key: value.shape for key, value in self.empty_observation().items()}
        self.observation_space = spaces.Dict(
            {key: spaces.Box(-np.inf, np.inf, shape, dtype=np.float64) for key, shape in shapes.items()}
        )

    def whole_graph(self) -> GraphKnowledge:
        """The causal graph as agents are told it where they are told all of it."""
        return GraphKnowledge(self.scm.nodes, self.scm.diagram)

    @abstractmethod
    def make_codec(self) -> Codec:
        """The mode's codec, which holds its action space; called once, when ``problem`` and ``scm`` are set.

        Raises:
            ArgumentError: if the problem lacks what the mode needs.
        """

    def read(self, action: Action) -> Action:
        """A copy of one valid action that shares nothing with what was handed over, which is looked at once.

        Whoever plays an action and keeps it as well reads it first: an object may give other numbers the next time,
        and an array may be changed by whom it belongs to.

        Raises:
            gymnasium.error.InvalidAction: if it is no element of the action space.
        """
        own = own_copy(self.action_space, action)
        self.decode(own)
        return own

    def read_batch(self, actions: Actions) -> Actions:
        """The same for a batch: an element of the batched action space."""
        own = own_copy(self.action_space, actions)
        self.decode_batch(own)
        return own

    def read_recommendation(self, recommended: Any) -> Any:
        """:meth:`read` of what an agent recommends: an action, or where there are several objectives some actions.

        Raises:
            gymnasium.error.InvalidAction: if it is no action, or no sequence of one or more.
        """
        if not self.problem.outcomes.objectives:
            return self.read(recommended)
        if not isinstance(recommended, list | tuple) or not recommended:
            raise InvalidAction(
                "with several objectives a recommendation is a list of the actions of a Pareto set, at least one; "
                f"given {shown(recommended)}"
            )
        return [self.read(action) for action in recommended]

    @abstractmethod
    def decode(self, action: Action) -> Intervention:
        """The intervention that one action stands for, in native units.

        Raises:
            gymnasium.error.InvalidAction: if it is no element of the action space.
        """

    @abstractmethod
    def decode_batch(self, actions: Actions) -> Intervention:
        """The same for a batch: an element of the batched action space."""

    @abstractmethod
    def describe(self, intervention: Intervention) -> Description:
        """The intervention in native units, by variable or parameter name."""

    def describe_batch(self, intervention: Intervention) -> Description:
        """The same for a batch: name -> new array, with ``_name`` masks as in Gymnasium's vector infos."""
        described: Description = {}
        for name, value in self.describe(intervention).items():
            described[name] = np.stack(value, axis=-1) if isinstance(value, tuple) else np.array(value)
            described[f"_{name}"] = np.ones(len(described[name]), dtype=bool)
        return described

    def priceable(self) -> Priceable:
        """The items of the mode's actions that may have a price.

        Raises:
            ArgumentError: if nothing may.
        """
        raise ArgumentError(f"{self.problem.name}: there are no costs in {self.mode} mode")

    def changed(self, intervention: Intervention) -> Changed:
        """The items that an action sets or changes and that may have a price: item -> ``(mask, native value)``."""
        return {}

    def cost(self, intervention: Intervention) -> Floats:
        """The cost of rounds, a number or an array of the batch's shape; one number where all cost the same.

        Args:
            intervention: what actions stand for, as :meth:`decode` or :meth:`decode_batch` gave it.
        """
        assert self.costs is not None, "nothing is paid"
        return self.costs.of(self.changed(intervention))

    def after(self, nodes: np.ndarray, values: Values) -> Observation:
        """The observation of rounds that were played.

        Args:
            nodes: the observed variables, in the order of ``self.nodes``, shape ``(..., n)``.
            values: all variables by name, latent ones included, of the rounds' shape, as :meth:`play` gave them.
        """
        return {"nodes": nodes}

    def empty_observation(self) -> Observation:
        """The observation before the first round: zeros."""
        return self.after(np.zeros(len(self.nodes)), defaultdict(float))

    @abstractmethod
    def acted_on(self) -> dict[str, str]:
        """The nodes that actions act on directly, and how, in a word: for pictures and tables."""

    def entering(self, intervention: Intervention | None, values: Mapping[str, Floats]) -> dict[str, list[Entry]]:
        """The entries of an action into the mechanisms, by node; none where it sets variables, whose values tell.

        Args:
            intervention: what the action stood for; None before the first.
            values: all variables by name in the round, latent ones included.
        """
        return {}

    @abstractmethod
    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """A batch of actions for the initial data, in the order in which they are played.

        Args:
            rng: source of the random actions.
            observational: number of rounds without intervention.
            random: number of random interventions (hard mode: of each target set); None for the mode's default.
        """

    @abstractmethod
    def regions(self) -> list[Region]:
        """Parts that together make up the action space, for the oracle's search."""

    def all_actions(self) -> np.ndarray | None:
        """All actions as one array, where there are few enough to be tried one by one; else None."""
        return None

    @abstractmethod
    def task_fields(self) -> dict[str, Any]:
        """The fields of ``task_class`` that are the mode's own."""

    def exogenous(self) -> dict[str, Distribution]:
        """Observed variable, as agents see it -> the distribution of its noise."""
        return self.scm.noise_of_nodes()

    def drawn_fields(self, rng: np.random.Generator, observational: int) -> dict[str, Any]:
        """Fields of ``task_class`` that are drawn at random, one drawing a seed.

        Args:
            rng: their source.
            observational: how many rounds of initial data in which nothing is set are asked for.
        """
        return {}


class Feedback(Interface):
    """One problem played in one mode: an interface, and the rounds that actions give.

    A subclass is a mode; its module is named after it and calls it ``FEEDBACK``. Environments, the oracle and the
    evaluator take everything that they know of a mode from here.

    Attributes:
        truth: the same with the graph known, from which regret is counted; itself where it is.
    """

    problem: Problem
    scm: System

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.truth: Feedback = self

    def play(self, noise: Draws, intervention: Intervention) -> Values:
        """The outcome of rounds with this noise, by variable, of the shape of the noise and the batch together."""
        return self.scm.propagate(noise, intervention)

    def objectives(self, values: Values, intervention: Intervention) -> dict[str, Floats]:
        """The values of several objectives in rounds, by name, each in its own units and direction.

        Args:
            values: of the rounds, as :meth:`play` gave them.
            intervention: what actions stand for, as :meth:`decode` or :meth:`decode_batch` gave it.
        """
        outcomes = self.problem.outcomes
        return outcomes.several(values, self.cost(intervention) if outcomes.is_paid_for else 0.0)

    def before(self, noise: Draws) -> Observation:
        """The observation of rounds with this noise before they are played, where the mode ``looks_ahead``."""
        return {}

    def start(self) -> Memory:
        """The memory before the first round, where the mode ``remembers``."""
        return None

    def situate(self, intervention: Intervention, memory: Memory) -> Intervention:
        """The effect of an action in the next round, where the mode ``remembers``.

        Args:
            intervention: what the action stands for by itself, of one round or a batch of them.
            memory: of the rounds before; its entries broadcast against the batch.
        """
        return intervention

    def remember(self, memory: Memory, intervention: Intervention, values: Values) -> Memory:
        """The memory after a round was played, on which the next one depends.

        Args:
            memory: what it depended on itself; stays as it is.
            intervention: as :meth:`situate` gave it.
            values: what the round gave, as from :meth:`play`.
        """
        return memory

    def recalled(self, memory: Memory) -> Observation:
        """The part of the memory that an agent sees before the next round, shape ``(k,)`` or ``(n, k)`` each."""
        return {}

    def known_maximiser(self) -> Action | None:
        """An action that maximises E[Y | action], where theory gives one."""
        return None
