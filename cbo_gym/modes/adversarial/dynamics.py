"""Adversarial mode: an adversary sets parameters of the mechanisms too, which the agent sees after the round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.error import InvalidAction

from cbo_gym.actions import Domains, GridBox, GridCodec
from cbo_gym.actions.codec import Actions
from cbo_gym.actions.reading import as_numbers
from cbo_gym.actions.spaces import ON_GRID
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.modes.adversarial.strategies import Game, Mover, index_at, make_strategy
from cbo_gym.modes.base import Entry, Memory, Region
from cbo_gym.modes.parametric import MISSING, short_numbers, widest_of
from cbo_gym.modes.soft.dynamics import SoftFeedback
from cbo_gym.problems import Problem
from cbo_gym.problems.modes.adversarial import Adversary
from cbo_gym.scm import Floats, Intervention
from cbo_gym.scm.system import Draws, Values
from cbo_gym.task import Action, AdversarialTask, Mode, Observation


class AdversarialFeedback(SoftFeedback):
    """Soft interventions of two players: the agent's, and those of an adversary, whose moves it sees after the round.

    ## Action space
    ``GridBox(0, 1, (q,), levels)``: the agent's parameters of the mechanisms, mapped to native units by the problem;
    each is one of ``levels`` equally spaced numbers, 0 and 1 included.

    ## Observation space
    ``Dict(nodes=Box(n), adversary=Box(k))``: the observed variables in topological order, the reward last, and the
    adversary's move in the round that was played, in [0, 1] like an action; zeros at reset.

    ## Reward
    The value of the reward variable in this round. Regret is measured from the best fixed action in hindsight: the one
    with the greatest sum of E[Y | action, move] over the adversary's moves. The recorded optimum and the expected
    reward of an action alone are against the move of ``adversary="fixed"``. In the initial data moves are random.

    ## Arguments
    ``adversary``: ``"adaptive"`` is the best reply to the agent's past actions (each has 0.9 of the next one's weight),
    or, with a probability of 0.2, a move at random; ``"informed"`` is the same for the action that it meets, which no
    other adversary knows; ``"random"``: all moves are equally likely; ``"fixed"``: the worst move for an agent
    that plays at random; a list of moves in [0, 1], one per round, then again; or a function of the past actions, an
    array ``(rounds, q)``, that returns the move.

    ## References
    Sussex, Sessa, Makarova & Krause (2024), Adversarial causal Bayesian optimization, sec. 2 and 5.
    """

    mode = Mode.ADVERSARIAL
    several_objectives = False
    task_class = AdversarialTask
    remembers = True

    def __init__(self, problem: Problem, *, adversary: str | Sequence[Sequence[float]] | Mover = "adaptive") -> None:
        if (other := problem.data(Adversary)) is None:
            raise ArgumentError(f"{problem.name} has no adversary, so no adversarial mode")
        # the adversary's first coordinate
        self._first = problem.scm.action_dim - other.coordinates
        self._levels = other.levels
        self._luck = other.luck
        self._luck_index = [variable.name for variable in problem.scm.noisy].index(self._luck)
        self._grid = GridBox(self._first, self._levels)
        names, intervals = problem.domains.names, problem.domains.intervals
        self.move_domains = Domains(dict(zip(names[self._first :], intervals[self._first :], strict=True)))
        self.moves = GridBox(len(self.move_domains), self._levels).all()
        self._native_moves = self.move_domains.points_to_native(self.moves)
        super().__init__(problem)
        # coordinates of the agent's actions; the mechanisms take both players'
        self._action_dim = self._first
        self._null = self._null[: self._first]
        self.game = Game(self._grid, self.moves, self._rewards_without_noise())
        self.strategy = make_strategy(adversary, self.game)

    def make_codec(self) -> GridCodec:
        whole = self.require_parameters()
        own = slice(self._first)
        intervals = dict(zip(whole.names[own], whole.intervals[own], strict=True))
        domains = Domains(intervals if whole.named else whole.intervals[own])
        return GridCodec(self._grid, domains)

    @cached_property
    def coordinates(self) -> Mapping[str, tuple[int, ...]]:
        if self.domains.named:
            return {name: (index,) for index, name in enumerate(self.domains.names)}
        return self.own_nodes

    @property
    def own_nodes(self) -> Mapping[str, tuple[int, ...]]:
        return self._of_agent(self.scm.action_nodes)

    def _of_agent(self, entering: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        kept = {node: tuple(i for i in own if i < self._first) for node, own in entering.items()}
        return {node: own for node, own in kept.items() if own}

    def all_actions(self) -> np.ndarray:
        return self._grid.all()

    def _rewards_without_noise(self) -> np.ndarray:
        """Return the reward without noise of every action against every move, ``(n, m)``."""
        native = self.domains.points_to_native(self.all_actions())
        soft = [*native.T[..., None], *self._native_moves.T]
        no_noise = tuple(np.zeros(1) for _ in self.scm.noisy)
        rewards = self.problem.outcomes.reward(self.scm.propagate(no_noise, Intervention(soft)))
        return np.broadcast_to(rewards, (len(native), len(self.moves)))

    def decode(self, action: Action) -> Intervention:
        array = as_numbers(action)
        intervention = super().decode(array)
        steps = self._levels - 1
        for value in array.tolist():
            if abs(value - int(value * steps + 0.5) / steps) > ON_GRID:
                index = array.tolist().index(value)
                raise InvalidAction(f"action[{index}] must be one of {self._level_names}; given {value}")
        return intervention

    def decode_batch(self, actions: Actions) -> Intervention:
        array = as_numbers(actions)
        intervention = super().decode_batch(array)
        inside = (np.abs(array - self._grid.nearest(array)) <= ON_GRID).all(axis=1)
        if not inside.all():
            first = int(np.argmin(inside))
            raise InvalidAction(
                f"actions[{first}] is outside {self.action_space}, whose coordinates are {self._level_names}; "
                f"given {short_repr(array[first].tolist())}"
            )
        return intervention

    @property
    def _level_names(self) -> str:
        return ", ".join(f"{k}/{self._levels - 1}" for k in range(self._levels))

    def start(self) -> Memory:
        return self.strategy.start()

    def situate(self, intervention: Intervention, memory: Memory) -> Intervention:
        """Add the adversary's move, unless luck decides it when the round is played."""
        strategy = self.strategy
        move = strategy.move(memory, self._points(intervention) if strategy.sees_action else ())
        return intervention if move is None else self.against(intervention, move)

    def against(self, intervention: Intervention, moves: np.ndarray) -> Intervention:
        """Return the agent's intervention together with a move ``(k,)``, or moves ``(n, k)``, of the adversary."""
        native = self.move_domains.to_native(moves.tolist() if moves.ndim == 1 else moves.T)
        return Intervention([*intervention.soft, *native])

    def remember(self, memory: Memory, intervention: Intervention, values: Values) -> Memory:
        return self.strategy.remember(memory, self._points(intervention), values[self._luck])

    def _points(self, intervention: Intervention) -> list[Floats]:
        own = zip(self.domains.scales, intervention.soft)  # noqa: B905  # the adversary's follow
        return [scale.to_unit(value) for scale, value in own]

    def play(self, noise: Draws, intervention: Intervention) -> Values:
        """Return the outcome of rounds, with the adversary's native coordinates; luck draws a missing move."""
        soft = intervention.soft
        if len(soft) == self._first:
            drawn = self._native_moves[index_at(noise[self._luck_index], len(self.moves))]
            soft = [*soft, *(drawn.tolist() if drawn.ndim == 1 else np.moveaxis(drawn, -1, 0))]
        values = self.scm.propagate(noise, Intervention(soft))
        values.update(zip(self.move_domains.names, soft[self._first :], strict=True))
        return values

    def after(self, nodes: np.ndarray, values: Values) -> Observation:
        scales = zip(self.move_domains.names, self.move_domains.scales)  # noqa: B905
        move = [scale.to_unit(values[name]) for name, scale in scales]
        # rounding of the native units may leave [0, 1]
        if nodes.ndim == 1:
            return {"nodes": nodes, "adversary": np.array([min(max(value, 0.0), 1.0) for value in move])}
        columns = np.broadcast_arrays(*move, nodes[..., 0])[:-1]
        return {"nodes": nodes, "adversary": np.stack(columns, axis=-1).clip(0.0, 1.0)}

    def empty_observation(self) -> Observation:
        return {"nodes": np.zeros(len(self.nodes)), "adversary": np.zeros(len(self.move_domains))}

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """Return by default 2q + 1 random actions, which meet random moves."""
        actions = super().initial_actions(rng, observational, random)
        return self.codec.to_action(actions)

    def regions(self) -> list[Region]:
        return []  # all actions can be enumerated

    def known_maximiser(self) -> Action | None:
        return None

    def node_entries(self, intervention: Intervention | None, values: Mapping[str, Floats]) -> dict[str, list[Entry]]:
        """Return the agent's entries, then the adversary's."""
        entries = [self.entry(i, intervention, values) for i in range(self._first)]
        entries += [self._move_entry(name, values) for name in self.move_domains.names]
        return {node: [entries[i] for i in own] for node, own in self.scm.action_nodes.items()}

    def _move_entry(self, name: str, values: Mapping[str, Floats]) -> Entry:
        domain = self.move_domains.intervals[self.move_domains.names.index(name)]
        value = short_numbers(*domain)(float(values[name])) if name in values else MISSING
        return Entry(f"{name} = {value} (adversary)", f"{name} = {widest_of(*domain)} (adversary)")

    def task_fields(self) -> dict[str, Any]:
        fields = super().task_fields()
        own, entering = slice(self._first), fields["action_nodes"]
        of_adversary = {
            node: tuple(i - self._first for i in coordinates if i >= self._first)
            for node, coordinates in entering.items()
        }
        return {
            **fields,
            "action_nodes": self._of_agent(entering),
            **{name: tuple(fields[name])[own] for name in ("action_domains", "action_names", "null_action")},
            "adversary_nodes": {node: others for node, others in of_adversary.items() if others},
            "adversary_domains": self.move_domains.intervals,
            "adversary_names": self.move_domains.names,
            "levels": self._levels,
        }


FEEDBACK = AdversarialFeedback
