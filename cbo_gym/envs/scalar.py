"""CausalBanditEnv: one experiment on a problem, in any feedback mode."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from operator import itemgetter
from typing import Any

import gymnasium as gym
import numpy as np

from cbo_gym._util.arguments import MAX_NOISE_SEED, seed_number
from cbo_gym.actions import Space
from cbo_gym.envs.objectives import finite_rewards, reward_space
from cbo_gym.envs.rendering import RENDER_MODES, render, require_render_mode
from cbo_gym.envs.snapshot import Snapshot
from cbo_gym.modes import make_dynamics
from cbo_gym.modes.oracles.constrained import require_feasible
from cbo_gym.problems import Problem
from cbo_gym.problems.outcomes import COST
from cbo_gym.scm import Intervention, System
from cbo_gym.scm.model import not_finite_error
from cbo_gym.scm.system import Draws, Values
from cbo_gym.task import Action, Mode, Observation, StepInfo

# Number of rounds drawn at once. A change would change every run, because the noise of a seed depends on it.
NOISE_BLOCK = 256


class NoiseStream:
    """The exogenous noise of successive rounds, drawn in blocks: for each round a tuple of floats or of arrays.

    The draws depend only on the generators' states and the number of rounds, never on actions, so that all agents
    with the same seed meet the same noise.

    Args:
        scm: the system.
        rng: one generator, for floats; or those of n experiments, for arrays of shape ``(n,)``.
    """

    def __init__(self, scm: System, rng: np.random.Generator | Sequence[np.random.Generator]) -> None:
        self._scm, self._rng = scm, rng
        self._rounds: list[Draws] = []
        self._next = 0

    def draw(self) -> Draws:
        """Return the noise of the next round."""
        if self._next == len(self._rounds):
            self._refill()
        self._next += 1
        return self._rounds[self._next - 1]

    def peek(self) -> Draws:
        """Return the noise that :meth:`draw` will return."""
        if self._next == len(self._rounds):
            self._refill()
        return self._rounds[self._next]

    def take_back(self) -> None:
        """Undo the last :meth:`draw`."""
        self._next -= 1

    def _refill(self) -> None:
        if isinstance(self._rng, np.random.Generator):
            columns: Any = [column.tolist() for column in self._scm.draw_noise(self._rng, NOISE_BLOCK)]
        else:
            draws = [self._scm.draw_noise(rng, NOISE_BLOCK) for rng in self._rng]
            columns = [np.stack(experiments, axis=1) for experiments in zip(*draws, strict=True)]
        # Keep the last round, because it may be taken back.
        last = self._rounds[-1:]
        self._rounds = [*last, *(zip(*columns, strict=True) if columns else [()] * NOISE_BLOCK)]
        self._next = len(last)


class CausalBanditEnv(gym.Env[Observation, Action]):
    """Bandit on a structural causal model: a step is one round and returns the values of all observed variables.

    Spaces, actions and observations are those of the feedback mode, see the classes of :mod:`cbo_gym.modes`. The
    reward is the value of the problem's objective in the round. An episode is never terminated, and truncated after the
    registered number of rounds.

    Args:
        problem: the Problem, the import path ``"package.module:function"`` of its builder, or a YAML file's path.
        mode: the feedback mode.
        render_mode: None, ``"ansi"`` or ``"rgb_array"``.
        parameters: keyword arguments of the mode and of the problem's builder; ``constraints`` on expected values of
            nodes, see :mod:`cbo_gym.problems.variations.constraints`; ``graph`` and its keywords, what agents know of
            the causal graph, see :mod:`cbo_gym.problems.variations.graph_knowledge`; ``costs`` of rounds, as
            :meth:`cbo_gym.actions.Costs.read` takes them, which every ``info`` then has as ``cost``; and ``instance``,
            0 for the system as published, see :mod:`cbo_gym.problems.variations.instance`.

    Attributes:
        dynamics: Meaning of actions and observations.
        problem: The problem that is played.
        scm: Its system.
        mode: The feedback mode.
        reward_space: Space of rewards, as in MO-Gymnasium; only with several objectives.
        round: Number of rounds played.
        total_reward: Sum of their rewards; an array with several objectives.
        values: Values of all variables in the last round, latent ones included.
        intervened: Variables that the last action set.

    Raises:
        ArgumentError: if the problem cannot be built or does not fit the mode, no action meets the constraints, or the
            render mode is unknown.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 4}

    def __init__(
        self,
        problem: str | Problem,
        *,
        mode: Mode | str = Mode.SOFT,
        render_mode: str | None = None,
        **parameters: Any,
    ) -> None:
        require_render_mode(render_mode)
        self.dynamics = make_dynamics(problem, mode, **parameters)
        require_feasible(self.dynamics)
        self.mode = self.dynamics.mode
        self.problem = self.dynamics.problem
        self.scm = self.dynamics.scm
        self.render_mode = render_mode
        self.action_space: Space = self.dynamics.action_space
        self.observation_space = self.dynamics.observation_space  # type: ignore[assignment]
        self._observed = itemgetter(*self.dynamics.nodes)
        # Looked up once, because a step takes only a few microseconds.
        self._decode, self._play = self.dynamics.decode, self.dynamics.play
        self._describe, self._after = self.dynamics.describe, self.dynamics.after
        self._reward_of = self.problem.outcomes.reward
        self._before = self.dynamics.before if self.dynamics.observes_before else None
        self._remembers = self.dynamics.remembers
        self._has_costs = self.dynamics.costs is not None
        self._has_objectives = bool(self.problem.outcomes.objectives)
        if self._has_objectives:
            self.reward_space = reward_space(self.problem.outcomes)
        self._begin()

    def _begin(self) -> None:
        self.round = 0
        self.total_reward: Any = 0.0
        self.values: dict[str, Any] = {}
        self._intervention: Intervention | None = None
        self._noise: NoiseStream | None = None
        self._last_noise: Draws = ()
        self._memory = self._last_memory = self.dynamics.start()

    def reset(self, *, seed: int | None = None, options: StepInfo | None = None) -> tuple[Observation, StepInfo]:
        """Start an experiment. Without a seed the random stream of the noise continues.

        Raises:
            ArgumentError: if the seed is not a whole number from 0 to 2**128 - 1.
        """
        super().reset(seed=None if seed is None else seed_number(seed, at_most=MAX_NOISE_SEED))
        self._begin()
        observation = self.dynamics.empty_observation()
        if self._before:
            observation |= self._before(self._stream().peek())
        if self._remembers:
            observation |= self.dynamics.observe_memory(self._memory)
        return observation, {"round": 0, "intervention": {}}

    def step(self, action: Action) -> tuple[Observation, Any, bool, bool, StepInfo]:
        """Play one round.

        The reward is a float; with several objectives an array of :attr:`reward_space`, a number for each, all to be
        maximised, and ``info["objectives"]`` has them by name, in their own units and direction.

        Raises:
            gymnasium.error.InvalidAction: if the action is not an element of the action space; nothing changes then.
            OperationError: if the reward, or any variable of a :class:`~cbo_gym.scm.GuardedModel`, is not
                finite; nothing changes then.
        """
        intervention = self._decode(action)
        if self._remembers:
            intervention = self.dynamics.in_round(intervention, self._memory)
        stream = self._noise or self._stream()
        noise = stream.draw()
        try:
            values, observation, reward = self._outcome(noise, intervention, stream)
        except BaseException:
            stream.take_back()
            raise
        if self._remembers:
            self._last_memory = self._memory
            self._memory = self.dynamics.remember(self._memory, intervention, values)
            observation |= self.dynamics.observe_memory(self._memory)
        self._last_noise = noise
        self.values = values
        self._intervention = intervention
        self.round += 1
        self.total_reward += reward
        return observation, reward, False, False, self._info(intervention, reward)

    def _info(self, intervention: Intervention, reward: Any) -> StepInfo:
        """Return the ``info`` of a round, given its intervention and its reward."""
        info: StepInfo = {"round": self.round, "intervention": self._describe(intervention)}
        if self._has_objectives:
            pairs = zip(self.problem.outcomes.objectives, reward.tolist(), strict=True)
            info["objectives"] = {objective.name: objective.sign * value for objective, value in pairs}
        if self._has_costs:
            is_objective = self.problem.outcomes.has_cost_objective
            info["cost"] = info["objectives"][COST] if is_objective else self.dynamics.cost(intervention)
        return info

    def to_intervention(self, action: Action) -> Intervention:
        """Return the intervention that an action would make in the next round, in native units.

        Raises:
            gymnasium.error.InvalidAction: if it is not an element of the action space.
        """
        return self.dynamics.in_round(self._decode(action), self._memory)

    def counterfactual(self, action: Action) -> tuple[Observation, Any, bool, bool, StepInfo]:
        """Return the outcome of the last round if another action had been played, with the same noise.

        Abduction, action, prediction (Pearl, *Causality*, 2009, sec. 7.1), with nothing to infer, because the
        environment knows the round's exogenous noise and the structural equations, in which the noise does not depend
        on the action. The environment does not change. The counterfactual of the action played is the round itself.

        For teaching and evaluation: agents have no access, because they never get an environment.

        Args:
            action: an element of the unwrapped action space.

        Returns:
            observation, reward, terminated, truncated and info, as from ``step``. The part of the observation that
            belongs to the next round, such as a context, is the same under every action.

        Raises:
            gymnasium.error.ResetNeeded: before the first round of an experiment.
            gymnasium.error.InvalidAction: if the action is not an element of the action space.
            OperationError: as ``step``.
        """
        if not self.round:
            raise gym.error.ResetNeeded("no round has been played: call step before counterfactual")
        intervention = self._decode(action)
        if self._remembers:
            intervention = self.dynamics.in_round(intervention, self._last_memory)
        values, observation, reward = self._outcome(self._last_noise, intervention, self._stream())
        if self._remembers:
            observation |= self.dynamics.observe_memory(self.dynamics.remember(self._last_memory, intervention, values))
        return observation, reward, False, False, self._info(intervention, reward)

    def _outcome(
        self, noise: Draws, intervention: Intervention, stream: NoiseStream
    ) -> tuple[Values, Observation, Any]:
        """Return the values, the observation and the reward of a round; the stream is at the next round."""
        values = self._play(noise, intervention)
        if self._has_objectives:
            reward: Any = finite_rewards(self.problem.outcomes, self.dynamics.objectives(values, intervention), ())
        else:
            reward = float(self._reward_of(values))
            if not isfinite(reward):
                raise not_finite_error(self.scm.reward, f"gives {reward}")
        observation = self._after(np.array(self._observed(values), ndmin=1), values)
        if self._before:
            observation |= self._before(stream.peek())
        return values, observation, reward

    def _stream(self) -> NoiseStream:
        if self._noise is None:
            self._noise = NoiseStream(self.scm, self.np_random)
        return self._noise

    @property
    def intervened(self) -> frozenset[str]:
        return self._snapshot().intervened

    def render(self) -> str | np.ndarray | None:
        """Render the graph with the current values, the action and the reward so far, as text or pixels."""
        if self.render_mode is None:
            gym.logger.warn("render() was called on an environment without a render_mode")
            return None
        return render(self._snapshot(), self.render_mode)

    def _repr_html_(self) -> str:
        # Imported here, because it imports Matplotlib.
        from cbo_gym.drawing.html import facts, svg_of
        from cbo_gym.envs.picture import picture_of

        rows: list[tuple[str, object]] = [
            ("mode", self.mode),
            ("rounds", self.spec.max_episode_steps if self.spec else "-"),
            ("actions", self.action_space),
            ("observations", ", ".join(self.dynamics.observation_space)),
            ("reward", self.scm.reward),
            ("played so far", self.round),
        ]
        title = self.spec.id if self.spec else self.problem.name
        return facts(title, rows) + svg_of(picture_of(self._snapshot()).figure)

    def _snapshot(self) -> Snapshot:
        env_id = self.spec.id if self.spec else None
        return Snapshot(self.dynamics, env_id, self.round, self.total_reward, self.values, self._intervention)
