"""Intervention sets that can be Pareto-optimal for several objectives.

**Pareto** sets can have a vector E[Y1, ..., Ym | do] that no other minimal set equals or dominates. **Supported** sets
can maximise a weighted sum of the objectives, so that they reach the part of the front on its convex hull; Bhatija et
al. (2025) consider only these. There are more Pareto sets: observing averages over the values of a variable X, and a
mean of vectors may be dominated by none. With Y1 = X and Y2 = 1 - X for a coin X, observing gives (1/2, 1/2), which
neither (0, 1) nor (1, 0) dominates. Variables can be set to every value that they take naturally.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cbo_gym.errors import ArgumentError
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.scopes.intervention_sets import (
    check_manipulable,
    interventional_border,
    minimal_intervention_sets,
    pomis,
)


def pareto_sets(
    diagram: CausalDiagram, objectives: Sequence[str], manipulable: Iterable[str] | None = None
) -> set[frozenset[str]]:
    """Return the sets that in some SCM on the diagram have a vector which no other minimal set equals or dominates.

    A minimal set W is excluded if it leaves variables alone that should be set in every SCM. In the diagram under do(W)
    let the *exclusive* variables of Y_i be those that can be set and reach Y_i and no other objective. Setting their
    interventional border changes only Y_i, which it makes no worse (Lee & Bareinboim 2018, Theorem 4, with all other
    variables projected out). W remains if and only if each objective's border among its exclusive variables is empty.
    No theorem says that each remaining set is needed, but numerical searches gave an SCM for each, on all diagrams
    of four variables.

    Args:
        diagram: an acyclic causal diagram.
        objectives: the variables to be maximised, at least one.
        manipulable: the variables that may be set; None for all but the objectives.

    Raises:
        ArgumentError: for a cyclic diagram, unknown variables, no objective, or one that is manipulable.
    """
    allowed = _check(diagram, objectives, manipulable)
    first, *others = objectives
    minimal = minimal_intervention_sets(diagram, first, allowed, constrained=others)
    return {chosen for chosen in minimal if not _leaves_out(diagram, objectives, allowed, chosen)}


def supported_sets(
    diagram: CausalDiagram, objectives: Sequence[str], manipulable: Iterable[str] | None = None
) -> set[frozenset[str]]:
    """Return the sets that can maximise a weighted sum of the objectives: Pareto sets that are joint borders.

    Joint borders are the interventional borders of all objectives together under do(W), for all sets W. The published
    program lists all of them; those that are not Pareto sets are never needed. Arguments and errors are those of
    :func:`pareto_sets`.
    """
    allowed = _check(diagram, objectives, manipulable)
    # A name that no variable has.
    all_names = "".join(diagram.nodes) + "+"
    edges = [*diagram.directed, *((name, all_names) for name in objectives)]
    borders = pomis(CausalDiagram([*diagram.nodes, all_names], edges, diagram.bidirected), all_names, allowed)
    return borders & pareto_sets(diagram, objectives, allowed)


def _leaves_out(
    diagram: CausalDiagram, objectives: Sequence[str], allowed: frozenset[str], chosen: frozenset[str]
) -> bool:
    """Return whether a set leaves variables alone that should be set in every SCM."""
    # Variables that are set are constants and confound nothing.
    remaining = diagram.mutilate(chosen).subgraph(set(diagram.nodes) - chosen)
    ancestors = {name: remaining.ancestors([name]) for name in objectives}
    for name in objectives:
        exclusive = ((allowed - chosen) & ancestors[name]).difference(
            *(ancestors[other] for other in objectives if other != name)
        )
        others = set(remaining.nodes) - exclusive - {name}
        if exclusive and interventional_border(remaining.latent_projection(others), name):
            return True
    return False


def _check(diagram: CausalDiagram, objectives: Sequence[str], manipulable: Iterable[str] | None) -> frozenset[str]:
    if not objectives:
        raise ArgumentError("name at least one objective")
    allowed = frozenset(set(diagram.nodes) - set(objectives) if manipulable is None else manipulable)
    for name in objectives:
        check_manipulable(diagram, name, allowed)
    return allowed
