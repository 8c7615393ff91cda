"""Which variables to intervene on: intervention sets without contexts (Lee & Bareinboim 2018, 2019).

Sets of variables are frozensets of names. Everything holds for every SCM that a diagram allows; nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Iterable

from cbo_gym.errors import ArgumentError
from cbo_gym.scm.diagram import CausalDiagram


def is_minimal(diagram: CausalDiagram, reward: str, targets: frozenset[str], limited: Iterable[str] = ()) -> bool:
    """Whether each target has a directed path to the reward that avoids the others.

    That is, the targets are a subset of An(Y) in the diagram under do(targets): to leave one of them out can change
    the reward (Lee & Bareinboim 2018, Definition 1 and Proposition 1). Where nodes are ``limited`` by constraints, of
    An(Y and these): to leave one out can change the reward or what the constraints are on (Aglietti et al. 2023, sec.
    3.1, constrained minimal intervention sets).
    """
    return targets <= diagram.mutilate(targets).ancestors([reward, *limited])


def minimal_intervention_sets(
    diagram: CausalDiagram,
    reward: str,
    manipulable: Iterable[str] | None = None,
    *,
    most: int | None = None,
    limited: Iterable[str] = (),
) -> set[frozenset[str]]:
    """The sets none of whose members is idle once the others are set.

    See :func:`is_minimal`. Every subset of a minimal set is minimal, so that only these are extended.

    Args:
        diagram: an acyclic causal diagram.
        reward: the variable Y to be maximised.
        manipulable: the variables that may be set; None for all but the reward.
        most: the largest number of sets that is of use; None for any. There may be two to the power of the number of
            variables.
        limited: nodes under constraints, see :func:`is_minimal`.

    Returns:
        the minimal intervention sets, the empty one included.

    Raises:
        ArgumentError: for a cyclic diagram, unknown variables, or a manipulable reward; for more sets than ``most``.
    """
    allowed, limited = check_manipulable(diagram, reward, manipulable), tuple(limited)
    found = {frozenset[str]()}
    pending = [frozenset[str]()]
    while pending:
        base = pending.pop()
        for name in allowed - base:
            larger = base | {name}
            if larger not in found and is_minimal(diagram, reward, larger, limited):
                found.add(larger)
                pending.append(larger)
                if most is not None and len(found) > most:
                    raise ArgumentError(
                        f"the {len(allowed)} manipulable variables have more than {most} minimal intervention sets; "
                        "list the sets that may be set as targets"
                    )
    return found


def confounded_territory(diagram: CausalDiagram, reward: str) -> frozenset[str]:
    """The minimal unobserved-confounders' territory (MUCT) of the reward (Lee & Bareinboim 2018, Definition 3).

    It is the smallest set of ancestors of the reward that holds the reward and, with each variable, all that is
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
    """The parents of the confounded territory that lie outside it (Lee & Bareinboim 2018, Definition 4).

    To set the border is at least as good as to leave the diagram alone, in every SCM (ibid., Theorem 4).
    """
    territory = confounded_territory(diagram, reward)
    return frozenset(cause for name in territory for cause in diagram.parents(name)) - territory


def pomis(diagram: CausalDiagram, reward: str, manipulable: Iterable[str] | None = None) -> set[frozenset[str]]:
    """Possibly-optimal minimal intervention sets.

    A set is possibly optimal if in some SCM on the diagram its best value beats that of every other minimal set. These
    are the interventional borders of the diagram under do(W), for all sets W (Lee & Bareinboim 2018, Theorem 6).
    The recursion (ibid., Algorithm 1) sets the variables of the territory one at a time in reverse causal order: what
    lies outside it cannot change the border. Variables that cannot be set are projected out before (Lee & Bareinboim
    2019, Theorem 2).

    Args:
        diagram: an acyclic causal diagram.
        reward: the variable Y to be maximised.
        manipulable: the variables that may be set; None for all but the reward.

    Returns:
        the possibly-optimal minimal intervention sets, at least one. The empty set among them means: observe.

    Raises:
        ArgumentError: for a cyclic diagram, unknown variables, or a manipulable reward.
    """
    allowed = check_manipulable(diagram, reward, manipulable)
    projected = diagram.latent_projection(set(diagram.nodes) - allowed - {reward})
    order = [name for name in reversed(projected.topological_order) if name != reward]
    return _borders(projected, reward, order, frozenset())


def _borders(diagram: CausalDiagram, reward: str, order: list[str], skipped: frozenset[str]) -> set[frozenset[str]]:
    """The borders under do(W) for all W among ``order``, a list in reverse causal order.

    A border that holds a variable that was ``skipped`` on the way here is found where that variable is set.
    """
    territory = confounded_territory(diagram, reward)
    border = interventional_border(diagram, reward)
    if border & skipped:
        return set()
    inside = diagram.subgraph(territory | border)
    found = {border}
    remaining = [name for name in order if name in territory]
    for place, name in enumerate(remaining):
        cut = inside.mutilate([name])
        found |= _borders(cut, reward, remaining[place + 1 :], skipped.union(remaining[:place]))
    return found


def check_manipulable(diagram: CausalDiagram, reward: str, manipulable: Iterable[str] | None) -> frozenset[str]:
    """The manipulable variables, all but the reward where None is given.

    Raises:
        ArgumentError: for a cyclic diagram, unknown variables, or a manipulable reward.
    """
    if not diagram.is_acyclic:
        raise ArgumentError("scopes are defined for acyclic diagrams; this one has a directed cycle")
    diagram.ancestors([reward])  # raises for an unknown name
    if manipulable is None:
        return frozenset(diagram.nodes) - {reward}
    allowed = frozenset(manipulable)
    diagram.ancestors(allowed)
    if reward in allowed:
        raise ArgumentError(f"the reward {reward!r} cannot be manipulable; manipulable: {sorted(allowed)}")
    return allowed
