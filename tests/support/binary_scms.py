"""Small binary SCMs, whose best policies are searched among all deterministic policies."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from cbo_gym.scm import CausalDiagram
from cbo_gym.scm.scopes import (
    Scope,
)

Values = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Table:
    """A mechanism: the entry of ``table`` at the values of ``inputs``."""

    inputs: tuple[str, ...]
    table: np.ndarray

    def __call__(self, values: Values) -> np.ndarray:
        return self.table[tuple(values[name] for name in self.inputs)]


@dataclass(frozen=True)
class BinarySCM:
    """Binary variables over finitely many exogenous states.

    Args:
        exogenous: name -> value in each joint state, shape ``(states,)``.
        weights: the probabilities of the joint states.
        mechanisms: variable -> function of the values of all variables; only the reward's may be real-valued.
        reward: the variable to be maximised, without children.
    """

    exogenous: Mapping[str, np.ndarray]
    weights: np.ndarray
    mechanisms: Mapping[str, Callable[[Values], np.ndarray]]
    reward: str

    def best_value(self, diagram: CausalDiagram, scope: Scope) -> float:
        """Return the highest E[reward] over all deterministic policies of a scope, which fill the arrays' axes."""
        policies = sorted(scope)
        values = {name: column.reshape([1] * len(policies) + [-1]) for name, column in self.exogenous.items()}
        axis = {name: index for index, (name, _) in enumerate(policies)}
        acyclic = diagram.with_inputs(dict(scope))
        for name in acyclic.topological_order:
            if name not in axis:
                values[name] = self.mechanisms[name](values)
                continue
            contexts = dict(scope)[name]
            shape = [1] * (len(policies) + 1)
            shape[axis[name]] = -1
            code = np.arange(2**2 ** len(contexts)).reshape(shape)  # its bits are the policy's table
            row = sum(values[context] << index for index, context in enumerate(sorted(contexts)))
            values[name] = (code >> row) & 1
        reward = values[self.reward]
        return float((np.broadcast_to(reward, (*reward.shape[:-1], len(self.weights))) @ self.weights).max())

    def best_values(self, diagram: CausalDiagram, scopes: Iterable[Scope]) -> np.ndarray:
        return np.array([self.best_value(diagram, scope) for scope in scopes])

    def mutate(self, rng: np.random.Generator) -> BinarySCM:
        """Return a copy in which one to three entries of the tables are changed."""
        mechanisms = dict(self.mechanisms)
        for name in rng.choice(sorted(mechanisms), rng.integers(1, 4)):
            table = mechanisms[name].table.copy()
            entry = tuple(rng.integers(size) for size in table.shape)
            table[entry] = rng.choice([0.0, 1.0, rng.random()]) if name == self.reward else 1 - table[entry]
            mechanisms[name] = replace(mechanisms[name], table=table)
        return replace(self, mechanisms=mechanisms)


def random_scm(diagram: CausalDiagram, reward: str, rng: np.random.Generator) -> BinarySCM:
    """Draw random tables, a latent of two or three states for every bidirected edge, and noise at half of the nodes.

    The states of each exogenous variable have Dirichlet probabilities. The reward is a mean, so it needs no noise.
    """
    states = int(rng.integers(2, 4)) if len(diagram.bidirected) < 4 else 2
    latents = {tuple(sorted(pair)): states for pair in sorted(diagram.bidirected, key=sorted)}
    noise = {(name,): 2 for name in diagram.nodes if name != reward and rng.random() < 0.5}
    sizes = {"~".join(names): size for names, size in {**latents, **noise}.items()}
    grid = np.indices(list(sizes.values())).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), dtype=int)
    exogenous = dict(zip(sizes, grid, strict=True))
    weights = np.ones(grid.shape[1])
    for name, size in sizes.items():
        weights = weights * rng.dirichlet(np.full(size, rng.choice([0.5, 1.0, 5.0])))[exogenous[name]]
    mechanisms = {}
    for name in diagram.nodes:
        sources = [source for source in sizes if name in source.split("~")]
        inputs = (*sources, *diagram.parents(name))
        shape = [sizes.get(source, 2) for source in inputs]
        if name == reward:
            mean = rng.random(shape)
            table = mean.round() if rng.random() < 0.5 else mean
        else:
            table = rng.integers(0, 2, shape)
        mechanisms[name] = Table(inputs, np.asarray(table))
    return BinarySCM(exogenous, weights, mechanisms, reward)


def random_diagram(rng: np.random.Generator, size: int) -> tuple[CausalDiagram, str]:
    """Return a diagram with random edges of both kinds, sparse or dense, and its last variable, the reward."""
    nodes = [f"V{i}" for i in range(size)]
    pairs = list(itertools.combinations(nodes, 2))
    directed, bidirected = rng.choice([0.4, 0.6, 0.8]), rng.choice([0.15, 0.3])
    return CausalDiagram(
        nodes, [p for p in pairs if rng.random() < directed], [p for p in pairs if rng.random() < bidirected]
    ), nodes[-1]


def greatest_lead(
    diagram: CausalDiagram,
    reward: str,
    contender: Scope,
    rivals: Iterable[Scope],
    rng: np.random.Generator,
    effort: Iterable[tuple[int, int]],
) -> float:
    """Return the largest lead of a scope's best value over its rivals' that hill climbing over random SCMs reaches.

    Args:
        effort: pairs (restarts, steps per restart), tried in turn until there is a lead of 0.001.
    """
    listed = [contender, *rivals]

    def lead(scm: BinarySCM) -> float:
        own, *others = scm.best_values(diagram, listed)
        return own - max(others)

    greatest = -np.inf
    for restarts, steps in effort:
        for _ in range(restarts):
            scm = random_scm(diagram, reward, rng)
            current = lead(scm)
            for _ in range(steps):
                changed = scm.mutate(rng)
                if (reached := lead(changed)) >= current:
                    scm, current = changed, reached
                if current > 1e-3:
                    return current
            greatest = max(greatest, current)
    return greatest


def sort_scopes(scopes: Iterable[Scope]) -> list[Scope]:
    """Return the scopes in an order that is the same in every process."""
    return sorted(scopes, key=lambda scope: sorted((name, sorted(seen)) for name, seen in scope))


def largest(scopes: Iterable[Scope]) -> list[Scope]:
    """Return the scopes to which no context can be added; they contain the policies of all other scopes."""
    by_actions: dict[frozenset[str], list[dict[str, frozenset[str]]]] = {}
    for scope in scopes:
        by_actions.setdefault(frozenset(name for name, _ in scope), []).append(dict(scope))
    return [
        frozenset(policies.items())
        for alike in by_actions.values()
        for policies in alike
        if not any(other != policies and all(seen <= other[x] for x, seen in policies.items()) for other in alike)
    ]


def sets(*written: str) -> set[frozenset[str]]:
    return {frozenset(word) for word in written}


def subsets(names: list[str]) -> list[frozenset[str]]:
    return [frozenset(chosen) for size in range(len(names) + 1) for chosen in itertools.combinations(names, size)]


def some_of(rng: np.random.Generator, diagram: CausalDiagram, reward: str, share: float) -> list[str]:
    return [name for name in diagram.nodes if name != reward and rng.random() < share]
