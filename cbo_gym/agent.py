"""Agent: the base class of every method, which chooses actions, learns from rounds and recommends an action."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from inspect import isfunction
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cbo_gym._util.agent_state import pack, unpack
from cbo_gym._util.files import write_bytes
from cbo_gym._util.fronts import non_dominated
from cbo_gym._util.numerics import with_numerical_settings
from cbo_gym.agent_registry.cards import zoo_cards
from cbo_gym.agent_registry.zoo import name_of
from cbo_gym.errors import ArgumentError, UnsupportedModeError
from cbo_gym.task import Action, Info, Mode, Observation, Round, Task

__all__ = ["Agent", "UnsupportedModeError"]

# Agents that error messages suggest for tasks with limits or mixed domains.
AGENTS_WITH_LIMITS = ("Auto", "CBO", "cCBO", "ConstrainedEI", "EIFN", "GP-UCB", "MCBO", "Optuna", "Random")
# Agents that error messages suggest for several objectives, without and with limits or mixed domains.
AGENTS_WITH_OBJECTIVES = ("Auto", "CausalParetoSelect", "qNEHVI", "qNEHVI-Network", "qNEHVI-Sets", "Random")
AGENTS_WITH_OBJECTIVES_AND_LIMITS = ("Auto", "qNEHVI", "qNEHVI-Network", "qNEHVI-Sets", "Random")


def agents_with_limits(task: Task) -> str:
    """Return the agents that an error message suggests for a task with limits or mixed domains."""
    return _playing(task, AGENTS_WITH_OBJECTIVES_AND_LIMITS if task.objectives else AGENTS_WITH_LIMITS)


def _playing(task: Task, agents: Sequence[str]) -> str:
    """Return those of the agents that play a task's mode: ``"Auto, CBO or Random"``."""
    cards = zoo_cards()
    *others, last = [name for name in agents if task.mode in cards[name].modes]
    return f"{', '.join(others)} or {last}"


def overrides(agent: Any, name: str) -> bool:
    """Return whether an agent has a method in place of that of :class:`Agent`."""
    method = getattr(agent, name, None)
    return method is not None and getattr(method, "__func__", None) is not getattr(Agent, name)


class LeaveOneOut(NamedTuple):
    """Leave-one-out predictions of the values of a node: each value is predicted from the other rounds.

    Attributes:
        values: values that the model has learned from, ``(n,)``.
        predictions: prediction of each value by a model that has not learned from it, ``(n,)``.
        half_widths: half widths of the 95 % intervals of new outcomes around the predictions, ``(n,)``.
    """

    values: np.ndarray
    predictions: np.ndarray
    half_widths: np.ndarray

    @classmethod
    def join(cls, parts: Sequence[LeaveOneOut]) -> LeaveOneOut:
        """Return the predictions of several models of a node, one after the other."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    @property
    def covered(self) -> np.ndarray:
        """Whether each value lies in its interval, ``(n,)``."""
        return np.abs(self.values - self.predictions) <= self.half_widths


# Keys of observations that are facts about one played round; a predicted round lacks them.
SINGLE_ROUND_KEYS = ("std", "count", "differs")


class Agent(ABC):
    """Base class of the agents. Any object with its public methods can play as well.

    The loop is ``reset``, then ``act``, ``env.step``, ``update`` for every round; ``recommend`` may be called at any
    time. A subclass lists the feedback modes that it plays in ``modes`` and implements ``act``; most extend ``update``.
    In these methods NumPy, SciPy and torch compute with one thread, which is quickest for small matrices, and NumPy
    ignores underflow.

    Attributes:
        task: The task, with all that the agent may know.
        rng: Random generator, seeded by :meth:`reset`.
        history: All rounds. Rounds are appended; an agent that forgets or changes rounds makes a new list.
    """

    modes: ClassVar[frozenset[Mode]] = frozenset()
    #: Whether tasks may have several objectives, so that rewards are arrays and recommendations lists of actions.
    several_objectives: ClassVar[bool] = False
    #: Whether values of a round may be missing; a missing value is NaN.
    takes_missing: bool = False
    #: Whether values may be categories, integers or steps, or numbers on a logarithmic scale.
    takes_mixed_domains: ClassVar[bool] = False
    #: Whether the agent learns from rounds without a reward, see :meth:`update_partial`.
    takes_partial: bool = False
    #: Whether the agent models the mechanism of each node, and so can learn from an earlier campaign in which some
    #: mechanisms were different. In the rounds of such a campaign, ``observation["differs"]`` tells for each of
    #: ``task.nodes`` whether its mechanism was different. Rounds whose reward no such node affects are passed to
    #: :meth:`update`, the others to :meth:`update_partial`. If the task has no empty target set, rounds without an
    #: intervention are passed to :meth:`update_partial` too, with target -1.
    learns_mechanisms: bool = False
    #: Whether actions stay within ``task.codec.limits``, which may change between calls.
    takes_limits: bool = False
    #: Whether the agent uses the precision of values: their standard errors ``observation["std"]``, one for each node,
    #: NaN if it is unknown; or the number of rounds over which the reward is averaged, ``observation["count"]``. Rounds
    #: without a stated precision lack these keys.
    takes_precision: bool = False
    #: Incremented when the behaviour of the agent changes, so that its runs are played again.
    revision: ClassVar[int] = 1

    task: Task
    rng: np.random.Generator
    history: list[Round]
    #: Result of the last search: the history, its length, the index of the best round, the best and the last round.
    __best_known: tuple[list[Round], int, int, Round, Round] | None = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Apply numerical settings to methods that override a method with them."""
        super().__init_subclass__(**keywords)
        for name, method in list(vars(cls).items()):
            if isfunction(method) and hasattr(getattr(Agent, name, None), "__wrapped__"):
                setattr(cls, name, with_numerical_settings(method))

    @with_numerical_settings
    def reset(self, task: Task, seed: int) -> None:
        """Start a run on ``task``; the task's initial data go through :meth:`update`.

        Args:
            task: the task, with all that the agent may know.
            seed: seed of all randomness of the agent, from 0 to 2**32 - 1.

        Raises:
            UnsupportedModeError: if the agent does not play the task's mode, or needs a causal diagram and the task's
                is hidden.
        """
        if task.mode not in self.modes:
            modes = ", ".join(sorted(self.modes)) or f"no mode: set modes = frozenset({{Mode.{task.mode.name}}}) in it"
            raise UnsupportedModeError(f"{name_of(self)} plays {modes}; {task.env_id} is {task.mode}")
        if task.objectives and not self.several_objectives:
            raise UnsupportedModeError(
                f"{name_of(self)} maximises one reward; {task.env_id} has several objectives: "
                f"{', '.join(map(str, task.objectives))}; choose {_playing(task, AGENTS_WITH_OBJECTIVES)}"
            )
        if task.codec.limits is not None and not self.takes_limits:
            raise UnsupportedModeError(
                f"{name_of(self)} does not keep limits, and {task.env_id} has "
                f"{', '.join(map(repr, task.codec.limits.statements))}; choose {agents_with_limits(task)}"
            )
        if not (self.takes_mixed_domains or task.codec.domains.is_plain):
            domains = [f"{name}: {domain!r}" for name, domain in task.codec.domains.typed.items()]
            raise UnsupportedModeError(
                f"{name_of(self)} takes only numbers between bounds; {task.env_id} has {', '.join(domains)}; "
                f"choose an agent that takes these: {agents_with_limits(task)}"
            )
        self.task = task
        self.rng = np.random.default_rng(seed)
        self.history = []
        self.setup(seed)
        for initial_round in self.initial_rounds():
            if "context" in initial_round.observation:
                # In initial data, the observation has the context in which the action was chosen.
                self.set_context(initial_round.observation["context"])
            self.update(initial_round.action, initial_round.observation, initial_round.reward, {})

    def setup(self, seed: int) -> None:  # noqa: B027  (most agents need it, the simplest do not)
        """Build the attributes that depend on ``self.task``; called by :meth:`reset` before the initial data arrive."""

    def initial_rounds(self) -> Sequence[Round]:
        """Return the rounds of ``task.initial_data`` that :meth:`reset` passes to :meth:`update`; all by default."""
        return self.task.initial_data

    @abstractmethod
    @with_numerical_settings
    def act(self, observation: Observation) -> Action:
        """Choose the next action, an element of ``self.task.action_space``."""

    @with_numerical_settings
    def act_batch(self, observation: Observation, count: int) -> list[Action]:
        """Choose several actions, all of which are played before any outcome is known.

        The first is that of :meth:`act`, the others are those of :meth:`act_given_pending`.

        Args:
            observation: as of :meth:`act`.
            count: number of actions, at least 1.
        """
        first = self.act(observation)
        return [first, *(self.act_given_pending(observation, [first], count - 1) if count > 1 else [])]

    @with_numerical_settings
    def act_given_pending(
        self,
        observation: Observation,
        pending: Sequence[Action],
        count: int = 1,
        contexts: Sequence[np.ndarray] | None = None,
        measured: Sequence[Mapping[str, float]] | None = None,
    ) -> list[Action]:
        """Choose actions while the outcomes of other actions are unknown or only partly known.

        A copy of the agent chooses them. Before each choice it is updated with the fantasies of the pending and the
        chosen actions, see :meth:`fantasize`, so that the actions differ. The agent itself learns from a round once,
        when it is complete.

        Args:
            observation: as of :meth:`act`.
            pending: the actions without an outcome; not empty.
            count: number of actions to choose, at least 1.
            contexts: in contextual mode, the contexts of the pending actions; None if it is that of ``observation``.
            measured: for each pending action, the values of variables that are known already; None if there are none.
        """
        copied = deepcopy(self, {id(self.task): self.task})
        # Spawn, so that the next copy draws other numbers.
        copied.rng = self.rng.spawn(1)[0]
        current_context: Any = observation.get("context")
        contexts = contexts or [current_context] * len(pending)
        measured = measured or [{}] * len(pending)
        # Rounds to fantasize: action, context and measured values.
        rounds: list[tuple[Action, Any, Mapping[str, float]]] = list(zip(pending, contexts, measured, strict=True))
        chosen: list[Action] = []
        for _ in range(count):
            for action, context, values in rounds:
                if context is not None:
                    copied.set_context(context)
                fantasy = copied.fantasize(action, values) if values else copied.fantasize(action)
                copied.update(action, *fantasy, {})
            chosen.append(copied.act(observation))
            rounds = [(chosen[-1], current_context, {})]
        return chosen

    def set_context(self, context: np.ndarray) -> None:  # noqa: B027  (nothing to do where contexts are ignored)
        """In contextual mode, set the context of the calls that follow.

        It is not needed between :meth:`act` and :meth:`update`. Call it if outcomes arrive in another order than the
        actions were chosen, for actions that the agent did not choose, and for a recommendation.

        Args:
            context: values of the task's contexts, shape ``(k,)``.
        """

    def fantasize(self, action: Action, measured: Mapping[str, float] | None = None) -> tuple[Observation, Any]:
        """Return the observation and the reward that the agent expects under an action.

        These are the observation and the estimated reward of the round whose action is nearest, except for the
        variables that :meth:`expected_nodes` predicts. Before the first round they are zeros. Values that were measured
        already are kept, and :meth:`expected_nodes_given` predicts the others.
        """
        measured = measured or {}
        if not self.history:
            # The observation space is a Dict of boxes.
            spaces: Any = self.task.observation_space
            zeros = {name: np.zeros(spaces[name].shape, spaces[name].dtype) for name in spaces}
            for name, value in measured.items():
                zeros["nodes"][self.task.nodes.index(name)] = value
            return zeros, self._reward_of(measured)
        codec = self.task.codec
        points = np.array([codec.to_point(played.action) for played in self.history])
        nearest = int(np.argmin(np.square(points - codec.to_point(action)).sum(axis=-1)))
        estimate = self.estimated_rewards()[nearest]
        entries = self.history[nearest].observation.items()
        observation = deepcopy({key: value for key, value in entries if key not in SINGLE_ROUND_KEYS})
        predicted = self.expected_nodes_given(action, measured) if measured else self.expected_nodes(action)
        expected = {**self._rewards_by_name(estimate), **predicted}
        for name, value in expected.items():
            # The cost of a round may be an objective, but is not a node.
            if name in self.task.nodes:
                observation["nodes"][self.task.nodes.index(name)] = value
        return observation, self._reward_of(expected)

    def _rewards_by_name(self, reward: Any) -> dict[str, float]:
        """Return the values of the objectives by name, given a reward, which is a number or a vector."""
        if not self.task.objectives:
            return {self.task.reward: float(reward)}
        pairs = zip(self.task.objectives, reward, strict=True)
        return {objective.name: objective.sign * float(value) for objective, value in pairs}

    def _reward_of(self, values: Mapping[str, float]) -> Any:
        """Return the reward, given values by name, 0 for a missing value; the inverse of :meth:`_rewards_by_name`."""
        if not self.task.objectives:
            return values.get(self.task.reward, 0.0)
        return np.array([objective.sign * values.get(objective.name, 0.0) for objective in self.task.objectives])

    def expected_nodes(self, action: Action) -> Mapping[str, float]:
        """Return expected values of the modelled nodes under an action."""
        return {}

    def expected_nodes_given(self, action: Action, measured: Mapping[str, float]) -> Mapping[str, float]:
        """Return expected values of the modelled nodes under an action, given measured values of some nodes."""
        return {**self.expected_nodes(action), **measured}

    @with_numerical_settings
    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the mean and standard deviation of E[Y | action] by the agent's model, for any action, played or not.

        In contextual mode they are conditional on the last context, or that of :meth:`set_context`. It is called from
        the first round on.

        Args:
            actions: non-empty sequence of actions.

        Returns:
            means and standard deviations, each of shape ``(len(actions),)``, or ``(len(actions), objectives)`` with
            several objectives, of the expectation, without the noise of a round; ``None`` for an agent without such a
            model.
        """
        return None

    @with_numerical_settings
    def sample_outcomes(
        self, actions: Sequence[Action], count: int, seed: int = 0, *, noise: bool = True
    ) -> Mapping[str, np.ndarray] | None:
        """Draw outcomes of actions from the posterior of the agent's model; the agent does not change.

        In contextual mode they are conditional on the last context, or that of :meth:`set_context`. It is called from
        the first round on.

        Args:
            actions: non-empty sequence of actions.
            count: number of draws, at least 1.
            seed: seed of the draws.
            noise: True for outcomes of new rounds; False for expectations E[node | action], which a draw has jointly
                for all actions.

        Returns:
            The reward and other modelled nodes -> draws, ``(count, len(actions))``, NaN where an action's effect on a
            node has no model; ``None`` for an agent without a joint posterior.
        """
        return None

    @with_numerical_settings
    def leave_one_out(self) -> Mapping[str, LeaveOneOut]:
        """Return leave-one-out predictions of the values of each modelled node.

        The models are those of :meth:`sample_outcomes`. The mapping is empty for an agent without such models.
        """
        return {}

    @with_numerical_settings
    def update(self, action: Action, observation: Observation, reward: Any, info: Info) -> None:
        """Learn from a round that was played; the caller may overwrite the arrays afterwards.

        The reward is a float, with several objectives an array.
        """
        stored_reward = np.array(reward, dtype=float) if self.task.objectives else float(reward)
        self.history.append(Round(deepcopy(action), deepcopy(observation), stored_reward))

    @with_numerical_settings  # noqa: B027
    def update_partial(self, action: Action, observation: Observation, info: Info) -> None:
        """Learn from a round whose reward will not be known; the values that were not measured are NaN.

        Only agents whose ``takes_partial`` is True are given such rounds, because they have models of single nodes. The
        round is not added to ``history``. Agents whose ``learns_mechanisms`` is True are given rounds of earlier
        campaigns too.
        """

    @with_numerical_settings
    def recommend(self) -> Action:
        """Return the action to deploy: the played action with the best estimate.

        With several objectives, return a list of the played actions whose estimates are non-dominated.

        Under constraints only actions with the smallest estimated violation are eligible, which are the feasible ones
        if there are any.

        Raises:
            ArgumentError: if nothing has been played yet.
        """
        if not self.history:
            hint = ", and call super().update(...) in an update() of your own" if overrides(self, "update") else ""
            raise ArgumentError(
                "nothing has been played yet, so there is nothing to recommend; call recommend() after the first update"
                + hint
            )
        if self.task.objectives:
            best = np.flatnonzero(non_dominated(self._read_estimates("estimated_rewards", len(self.task.objectives))))
            return [self.history[index].action for index in best]
        if not any(overrides(self, name) for name in ("estimated_rewards", "estimated_violations")):
            return self.__best_round().action
        violations = self._read_estimates("estimated_violations")
        rewards = np.where(violations <= violations.min(), self._read_estimates("estimated_rewards"), -np.inf)
        return self.history[int(np.argmax(rewards))].action

    def _read_estimates(self, method: str, *objectives: int) -> np.ndarray:
        """Return the estimates of all rounds by a method; a maximum of NaN or of another shape would be a wrong one."""
        estimates = np.asarray(getattr(self, method)(), dtype=float)
        shape = (len(self.history), *objectives)
        if estimates.shape != shape or np.isnan(estimates).any():
            raise ArgumentError(
                f"{name_of(self)}.{method}() must return an estimate for each round of history, shape {shape}; given "
                f"{'NaN' if estimates.shape == shape else f'shape {estimates.shape}'}"
            )
        return estimates

    def __best_round(self) -> Round:
        """Return the first round with the highest reward; repeated calls read every round only once."""
        history, count, best = self.history, 0, 0
        if self.__best_known is not None:
            rounds, length, index, best_round, last = self.__best_known
            unchanged = rounds is history and len(history) >= length
            if unchanged and history[index] is best_round and history[length - 1] is last:
                count, best = length, index
        candidates = [best, *range(count, len(history))]
        # NumPy's argmax would return a NaN.
        best = candidates[int(np.argmax([history[index].reward for index in candidates]))]
        self.__best_known = history, len(history), best, history[best], history[-1]
        return history[best]

    def estimated_rewards(self) -> np.ndarray:
        """Return estimates of E[Y | action] for every round of ``history``, shape ``(len(history),)``.

        With several objectives they are vectors, of shape ``(len(history), objectives)``.

        Without a model these are the observed rewards; agents with a surrogate return its posterior mean.
        """
        return np.array([played.reward for played in self.history])

    def estimated_violations(self) -> np.ndarray:
        """Return estimates of the violation of the task's constraints by the actions of ``history``.

        Shape ``(len(history),)``; zeros for an agent that ignores constraints.
        """
        return np.zeros(len(self.history))

    def state(self) -> bytes:
        """Return the whole state of the agent, except objects of its task, sealed with the user's key.

        See :mod:`cbo_gym._util.agent_state`.

        Raises:
            StateError: naming the attribute that cannot be saved, such as a thread or another library's optimiser.
        """
        return pack(self, self.task)

    def restore(self, state: bytes, task: Task, *, trusted: bool = False) -> None:
        """Restore the parameters and the state that :meth:`state` returned, so that the run continues unchanged.

        Args:
            state: state of an agent of the same class.
            task: the task that it plays.
            trusted: also read a state that is not sealed with your own key, such as one from another machine. A state
                is a pickle: reading one can run any code, so trust its author as you trust code that you install.

        Raises:
            ArgumentError: if it is not such a state, or neither sealed nor trusted; the agent is then unchanged.
        """
        unpack(state, task, self, trusted=trusted)

    def save(self, path: Path | str) -> None:
        """Write :meth:`state` to a file atomically.

        Raises:
            StateError: as :meth:`state`.
            OperationError: if the file cannot be written.
        """
        write_bytes(Path(path), self.state())

    def load(self, path: Path | str, task: Task, *, trusted: bool = False) -> None:
        """Restore from a file of :meth:`save`; raises as :meth:`restore`, or OSError if the file cannot be read."""
        self.restore(Path(path).read_bytes(), task, trusted=trusted)
