"""Minimal and possibly-optimal intervention sets, without contexts (Lee & Bareinboim 2018, 2019).

Sets of variables are frozensets of names. All results hold for every SCM that a diagram allows; nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from cbo_gym.errors import ArgumentError
from cbo_gym.scm.diagram import CausalDiagram


def subsets(names: Sequence[str]) -> list[frozenset[str]]:
    """Return all subsets of the names, from the empty set to the largest."""
    return [frozenset(members) for size in range(len(names) + 1) for members in combinations(names, size)]


def is_minimal(diagram: CausalDiagram, reward: str, targets: frozenset[str], constrained: Iterable[str] = ()) -> bool:
    """Return whether each target has a directed path to the reward that avoids the others.

    That is, the targets are among the ancestors of the reward in the diagram under do(targets), so that leaving one out
    can change the reward (Lee & Bareinboim 2018, Definition 1 and Proposition 1). With ``constrained`` nodes, the path
    may lead to one of them instead (Aglietti et al. 2023, sec. 3.1).
    """
    return targets <= diagram.mutilate(targets).ancestors([reward, *constrained])


def minimal_among(
    diagram: CausalDiagram, reward: str, targets: Iterable[frozenset[str]], constrained: Iterable[str] = ()
) -> list[frozenset[str]]:
    """Drop each set that has the same effect as a smaller or an earlier set of the list.

    A set has the same effect as its variables with a path to an outcome that avoids the others, see :func:`is_minimal`;
    the set of these variables need not be in the list.
    """
    outcomes = [reward, *constrained]
    effective = {target: target & diagram.mutilate(target).ancestors(outcomes) for target in targets}
    earliest = {reduced: target for target, reduced in reversed(effective.items())}
    return [
        target
        for target, reduced in effective.items()
        if target == reduced or (reduced not in effective and earliest[reduced] == target)
    ]


def minimal_intervention_sets(
    diagram: CausalDiagram,
    reward: str,
    manipulable: Iterable[str] | None = None,
    *,
    max_sets: int | None = None,
    constrained: Iterable[str] = (),
) -> set[frozenset[str]]:
    """Return the sets in which no variable is redundant once the others are set, see :func:`is_minimal`.

    Args:
        diagram: an acyclic causal diagram.
        reward: the variable Y to be maximised.
        manipulable: the variables that may be set; None for all but the reward.
        max_sets: largest number of sets; None for no limit (there may be 2^variables sets).
        constrained: nodes under constraints, see :func:`is_minimal`.

    Returns:
        the minimal intervention sets, the empty one included.

    Raises:
        ArgumentError: for a cyclic diagram, unknown variables, a manipulable reward, or more than ``max_sets`` sets.
    """
    allowed, constrained = check_manipulable(diagram, reward, manipulable), tuple(constrained)
    minimal = {frozenset[str]()}
    pending = [frozenset[str]()]
    while pending:
        # Every subset of a minimal set is minimal, so that only minimal sets are extended.
        base = pending.pop()
        for name in allowed - base:
            larger = base | {name}
            if larger not in minimal and is_minimal(diagram, reward, larger, constrained):
                minimal.add(larger)
                pending.append(larger)
                if max_sets is not None and len(minimal) > max_sets:
                    raise ArgumentError(
                        f"the {len(allowed)} manipulable variables have more than {max_sets} minimal intervention "
                        "sets; list the sets that may be set as targets"
                    )
    return minimal


def confounded_territory(diagram: CausalDiagram, reward: str) -> frozenset[str]:
    """Return the minimal unobserved-confounders' territory (MUCT) of the reward (Lee & Bareinboim 2018, Definition 3).

    It is the smallest set of ancestors of the reward that contains the reward and, with each variable, all variables
    confounded with it and all its descendants among these ancestors.
    """
    relevant = diagram.subgraph(diagram.ancestors([reward]))
    territory = frozenset([reward])
    while True:
        confounded = territory.union(*(relevant.c_component(name) for name in territory))
        larger = relevant.descendants(confounded)
        if larger == territory:
            return territory
        territory = larger


def interventional_border(diagram: CausalDiagram, reward: str) -> frozenset[str]:
    """Return the parents of the confounded territory outside it (Lee & Bareinboim 2018, Definition 4).

    In every SCM, setting the border is at least as good as observing (ibid., Theorem 4).
    """
    territory = confounded_territory(diagram, reward)
    return frozenset(cause for name in territory for cause in diagram.parents(name)) - territory


def pomis(diagram: CausalDiagram, reward: str, manipulable: Iterable[str] | None = None) -> set[frozenset[str]]:
    """Return the possibly-optimal minimal intervention sets (POMIS).

    A set is possibly optimal if in some SCM on the diagram its best value exceeds that of every other minimal set.
    These are the interventional borders of the diagram under do(W), for all sets W (Lee & Bareinboim 2018, Theorem 6).
    The recursion (ibid., Algorithm 1) sets the variables of the territory one at a time in reverse causal order;
    others cannot change the border. Variables that cannot be set are projected out first (Lee & Bareinboim 2019,
    Theorem 2).

    Args:
        diagram: an acyclic causal diagram.
        reward: the variable Y to be maximised.
        manipulable: the variables that may be set; None for all but the reward.

    Returns:
        the possibly-optimal minimal intervention sets, at least one. The empty set means: only observe.

    Raises:
        ArgumentError: for a cyclic diagram, unknown variables, or a manipulable reward.
    """
    allowed = check_manipulable(diagram, reward, manipulable)
    projected = diagram.latent_projection(set(diagram.nodes) - allowed - {reward})
    order = [name for name in reversed(projected.topological_order) if name != reward]
    return _borders(projected, reward, order, frozenset())


def _borders(diagram: CausalDiagram, reward: str, order: list[str], skipped: frozenset[str]) -> set[frozenset[str]]:
    """Return the borders under do(W) for all W among ``order``, which is in reverse causal order.

    A border with a ``skipped`` variable belongs to the branch in which that variable is set.
    """
    territory = confounded_territory(diagram, reward)
    border = interventional_border(diagram, reward)
    if border & skipped:
        return set()
    inside = diagram.subgraph(territory | border)
    borders = {border}
    remaining = [name for name in order if name in territory]
    for index, name in enumerate(remaining):
        cut = inside.mutilate([name])
        borders |= _borders(cut, reward, remaining[index + 1 :], skipped.union(remaining[:index]))
    return borders


def check_manipulable(diagram: CausalDiagram, reward: str, manipulable: Iterable[str] | None) -> frozenset[str]:
    """Return the manipulable variables, all but the reward by default; raise ArgumentError for wrong arguments."""
    if not diagram.is_acyclic:
        raise ArgumentError("scopes are defined for acyclic diagrams; this one has a directed cycle")
    # Raises for an unknown name.
    diagram.ancestors([reward])
    if manipulable is None:
        return frozenset(diagram.nodes) - {reward}
    allowed = frozenset(manipulable)
    diagram.ancestors(allowed)
    if reward in allowed:
        raise ArgumentError(f"the reward {reward!r} cannot be manipulable; manipulable: {sorted(allowed)}")
    return allowed
