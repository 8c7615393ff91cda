"""The environment that all feedback modes share: rounds, noise, semi-bandit observations."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from cbo_gym.problems import Problem, build_problem
from cbo_gym.scm import Intervention, StructuralCausalModel
from cbo_gym.scm.model import Noise, Values
from cbo_gym.task import Action, Mode, Observation

if TYPE_CHECKING:
    from cbo_gym.oracle import Oracle

NOISE_BLOCK = 256  # rounds drawn at once; part of the meaning of a seed, so changing it changes every run


class Region(NamedTuple):
    """A part of the action space in which an optimum is searched for: a unit box of ``dim`` coordinates.

    ``to_actions`` maps points of shape ``(n, dim)`` to a batch of ``n`` actions.
    """

    dim: int
    to_actions: Callable[[np.ndarray], Any]


def as_numbers(action: Any) -> np.ndarray:
    """The action as an array of floats.

    Raises:
        gymnasium.error.InvalidAction: if it holds anything but numbers.
    """
    try:
        return np.asarray(action, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise gym.error.InvalidAction(f"the action must be numbers; given {action!r}") from error


class NoiseStream:
    """The exogenous noise of successive rounds, drawn in blocks: a tuple of floats a round.

    The draws depend on the generator's state and the number of rounds alone, never on what is played, so that every
    agent of one seed meets the same noise.
    """

    def __init__(self, scm: StructuralCausalModel, rng: np.random.Generator) -> None:
        self._scm, self._rng = scm, rng
        self._rounds: list[tuple[float, ...]] = []
        self._next = 0

    def draw(self) -> tuple[float, ...]:
        if self._next == len(self._rounds):
            block = self._scm.draw_noise(self._rng, NOISE_BLOCK)
            rows = zip(*[column.tolist() for column in block], strict=True)
            self._rounds = list(rows) if block else [()] * NOISE_BLOCK
            self._next = 0
        self._next += 1
        return self._rounds[self._next - 1]


class CausalBanditEnv(gym.Env[Observation, Action]):
    """A bandit on a structural causal model: one step is one round, and all observed variables come back.

    A subclass fixes the feedback mode: its action space and what an action does to the system.

    Args:
        problem: the Problem, or the import path ``"package.module:function"`` of its builder.
        oracle: put ``expected_reward`` and ``instant_regret`` into ``info``. For evaluation and teaching only: an
            agent that reads them is cheating.
        render_mode: None, ``"ansi"`` or ``"rgb_array"``.
        parameters: keyword arguments of the problem's builder.

    Raises:
        ValueError: if the problem cannot be built, does not fit the mode, or the render mode is unknown.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}
    mode: ClassVar[Mode]
    #: axes of an intervention's entries in front of the batch's; :meth:`play` reduces them
    own_axes: ClassVar[int] = 0

    def __init__(
        self,
        problem: str | Problem,
        *,
        oracle: bool = False,
        render_mode: str | None = None,
        **parameters: Any,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            allowed = self.metadata["render_modes"]
            raise ValueError(f"render_mode must be None or one of {allowed}; given {render_mode!r}")
        self.problem = build_problem(problem, **parameters)
        self.scm = self.problem.scm
        self.render_mode = render_mode
        self.with_oracle = oracle
        self.action_space: spaces.Space[Any] = self.build_action_space()
        shapes = {key: value.shape for key, value in self.empty_observation().items()}
        boxes: dict[str, spaces.Space[Any]] = {
            key: spaces.Box(-np.inf, np.inf, shape, dtype=np.float64) for key, shape in shapes.items()
        }
        self.observation_space: spaces.Dict = spaces.Dict(boxes)  # type: ignore[assignment]
        self._observed = itemgetter(*self.scm.nodes)
        self._oracle: Oracle | None = None
        self._begin()

    @abstractmethod
    def build_action_space(self) -> spaces.Space[Any]:
        """The space of one action; called once, when ``problem`` and ``scm`` are set."""

    @abstractmethod
    def decode(self, action: Action) -> Intervention:
        """The intervention that one action stands for, in native units.

        Raises:
            gymnasium.error.InvalidAction: if it is no element of the action space.
        """

    @abstractmethod
    def decode_batch(self, actions: Any) -> Intervention:
        """The same for a batch: an element of the batched action space."""

    @abstractmethod
    def describe(self, intervention: Intervention) -> dict[str, Any]:
        """What was done, in native units by variable name."""

    @abstractmethod
    def describe_batch(self, intervention: Intervention) -> dict[str, Any]:
        """The same for a batch: variable -> array, with ``_name`` masks as in Gymnasium's vector infos."""

    @abstractmethod
    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Any:
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

    def known_maximiser(self) -> Action | None:
        """An action that maximises E[Y | action], where theory gives one."""
        return None

    @abstractmethod
    def record_action(self, action: Action) -> list[float] | dict[str, float]:
        """An action as the registry file writes it."""

    @abstractmethod
    def restore_action(self, recorded: Any) -> Action:
        """The action that :meth:`record_action` wrote."""

    @abstractmethod
    def task_fields(self) -> dict[str, Any]:
        """The fields of the Task that belong to the mode."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an experiment. Without a seed the noise goes on where the random stream is."""
        super().reset(seed=seed)
        self._begin()
        return self.empty_observation(), {"round": 0, "intervention": {}}

    def _begin(self) -> None:
        self.round = 0
        self.total_reward = 0.0
        self.values: dict[str, Any] = {}
        self.intervened: frozenset[str] = frozenset()
        self._noise: NoiseStream | None = None

    def empty_observation(self) -> Observation:
        return self.observation(np.zeros(len(self.scm.nodes)), defaultdict(float))

    def observation(self, nodes: np.ndarray, values: Values) -> Observation:
        """What an agent sees of rounds.

        Args:
            nodes: the observed variables, shape ``(..., n)``.
            values: all variables by name, latent ones included, of the rounds' shape, as :meth:`play` gave them.
        """
        return {"nodes": nodes}

    def play(self, noise: Noise, intervention: Intervention) -> Values:
        """What rounds with this noise give, by variable, of the shape of the noise and the batch together."""
        return self.scm.propagate(noise, intervention)

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play one round.

        Raises:
            gymnasium.error.InvalidAction: if the action is no element of the action space; nothing changes then.
        """
        intervention = self.decode(action)
        if self._noise is None:
            self._noise = NoiseStream(self.scm, self.np_random)
        values = self.play(self._noise.draw(), intervention)
        reward = float(values[self.scm.reward])
        self.values = values
        self.intervened = frozenset(intervention.hard)
        self.round += 1
        self.total_reward += reward
        info = {"round": self.round, "intervention": self.describe(intervention)}
        if self.with_oracle:
            info |= self.oracle_info(intervention)
        nodes = np.array(self._observed(values), ndmin=1)
        return self.observation(nodes, values), reward, False, False, info

    def oracle_info(self, intervention: Intervention) -> dict[str, Any]:
        """What ``oracle=True`` adds to ``info``, of the intervention's batch shape."""
        if self._oracle is None:
            from cbo_gym.oracle import Oracle

            self._oracle = Oracle(self)
        expected = self._oracle.mean_of(intervention).value
        return {"expected_reward": expected[()], "instant_regret": (self._oracle.optimum.value - expected)[()]}

    def render(self) -> Any:
        """The graph with the current values and the reward so far: text or an RGB array, by ``render_mode``."""
        if self.render_mode is None:
            gym.logger.warn("render() was called on an environment that was made without a render_mode")
            return None
        from cbo_gym.envs import rendering

        return rendering.render(self, self.render_mode)
