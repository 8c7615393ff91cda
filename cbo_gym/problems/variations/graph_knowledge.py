"""Change what agents know of a problem's causal graph: all of it, only the names, a wrong diagram, or candidates.

The true graph still gives the rewards, the optimum and the regret. What agents know gives actions and observations:

* Variables are in a topological order of the diagram that agents are given. Without one they are sorted by name. In
  masked mode they keep the order of the base arms.
* Hard mode offers the minimal intervention sets of the given diagram or of any candidate. If agents have neither, it
  offers all sets that are no larger than those of the problem. Sets that do not come from a graph stay the same.
* Agents still know which nodes an action enters, the scopes, and what they knew of the noise. They know a composition
  only if they have a diagram.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from cbo_gym._util.arguments import is_whole_number, require_word, whole_number
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.problems.base import MAX_TARGETS, Problem
from cbo_gym.problems.modes.contextual import Contexts
from cbo_gym.problems.modes.masked import SuperArms
from cbo_gym.scm.diagram import CausalDiagram, Edge
from cbo_gym.scm.equivalence import markov_equivalents
from cbo_gym.scm.scopes import is_minimal, scope_diagram
from cbo_gym.task import GraphKnowledge

CHANGES = ("graph_missing", "graph_added", "graph_reversed", "graph_omitted")
#: Keyword arguments of each value of ``graph``
KEYWORDS: dict[str, tuple[str, ...]] = {
    "known": (),
    "hidden": (),
    "wrong": (*CHANGES, "graph_seed"),
    "partial": ("graph_candidates", "graph_seed"),
}
GRAPH_KEYWORDS = ("graph", *CHANGES, "graph_seed", "graph_candidates")
MAX_CANDIDATES = 64
# Largest number of draws of a random change; for large graphs, whose draws take longer, it falls to MIN_DRAWS.
MAX_DRAWS, MIN_DRAWS = 1000, 100
# Largest number of draws times the squared number of nodes, unless that leaves fewer than MIN_DRAWS draws.
MAX_PAIRS = 1_000_000

# A number of random changes, or a list of changes.
Change = int | Sequence[Any]


class _NoSuchChangeError(ArgumentError):
    """No random change of the graph is valid."""


def with_knowledge(problem: Problem, graph: str = "known", **keywords: Any) -> Problem:
    """Return the problem with less, or other, knowledge of its graph for the agents.

    Args:
        problem: A problem whose graph is known.
        graph: ``"known"``; ``"hidden"``: only the variables' names; ``"wrong"``: another diagram instead of the true
            one; ``"partial"``: candidates, one of which should be the true diagram.
        keywords: By value of ``graph``; ``graph_seed``, at least 0, is the seed of random changes.

            * With ``"wrong"``: ``graph_missing``, ``graph_added`` and ``graph_reversed``, each a number of directed
              edges or a list of edges ``(cause, effect)``; ``graph_omitted``, a number of variables that no action sets
              or enters, or a list of such variables; and ``graph_seed``. By default one edge is missing.
            * With ``"partial"``: ``graph_candidates`` and ``graph_seed``. There are at most 64 candidates. None stands
              for the Markov equivalence class in which the reward has no effects; a number n for the true diagram and
              n - 1 others with one edge missing, added or reversed; or give a list of diagrams or of lists of edges. If
              the list lacks the true diagram, there is a warning.

    Raises:
        ArgumentError: if ``graph`` or a keyword is unknown; if more changes are given than there are edges or
            variables; if the diagram has a cycle or an edge out of the reward, or if no variable that can be acted on
            affects the reward in it.
    """
    require_word("graph", graph, KEYWORDS)
    if unknown := sorted(set(keywords) - set(KEYWORDS[graph])):
        raise ArgumentError(f"graph={graph!r} takes the keywords {list(KEYWORDS[graph])}; given also {unknown}")
    if graph == "known":
        return problem
    rng = np.random.default_rng(whole_number("graph_seed", keywords.pop("graph_seed", 0), at_least=0))
    if graph == "wrong":
        diagram = wrong_diagram(problem, rng, keywords or {"graph_missing": 1})
        knowledge = GraphKnowledge(diagram.nodes, diagram)
    elif graph == "hidden":
        knowledge = GraphKnowledge(_node_order(problem))
    else:
        knowledge = _candidate_knowledge(problem, rng, **keywords)
    composition = problem.composition if _keeps_composition(problem, knowledge) else None
    return replace(problem, knowledge=knowledge, targets=_targets(problem, knowledge), composition=composition)


def describe_knowledge(problem: Problem) -> str:
    """Return a summary of what agents know of a problem's graph, for users only: it says whether that is true."""
    knowledge, truth = problem.knowledge, problem.scm.diagram
    if knowledge is None:
        return "the true graph"
    if knowledge.diagram is not None:
        return ", ".join(f"{cause} -> {effect}" for cause, effect in sorted(knowledge.diagram.directed)) or "no edges"
    if not knowledge.candidates:
        return "the names of the variables"
    without = "" if truth in knowledge.candidates else ", without the true one"
    return f"candidates: {len(knowledge.candidates)}{without}"


def _candidate_knowledge(
    problem: Problem, rng: np.random.Generator, graph_candidates: int | Sequence[Any] | None = None
) -> GraphKnowledge:
    nodes, truth = _node_order(problem), problem.scm.diagram
    if graph_candidates is None:
        if not truth.is_acyclic:
            raise ArgumentError(f"{problem.name} has a cyclic graph, so no equivalence class; list the candidates")
        diagrams = markov_equivalents(truth, [problem.scm.reward], MAX_CANDIDATES)
    elif is_whole_number(graph_candidates):
        diagrams = _near_diagrams(problem, rng, whole_number("graph_candidates", graph_candidates, 1, MAX_CANDIDATES))
    elif isinstance(graph_candidates, list | tuple) and 1 <= len(graph_candidates) <= MAX_CANDIDATES:
        diagrams = [_as_diagram(problem, candidate) for candidate in graph_candidates]
        if truth not in diagrams:
            warnings.warn(f"the true graph of {problem.name} is not among the candidates", stacklevel=2)
    else:
        raise ArgumentError(
            f"graph_candidates must be a number from 1 to {MAX_CANDIDATES} or a list of 1 to {MAX_CANDIDATES} "
            f"diagrams; given {short_repr(graph_candidates)}"
        )
    candidates = dict.fromkeys(_with_nodes(diagram, nodes) for diagram in diagrams)
    return GraphKnowledge(nodes, candidates=tuple(sorted(candidates, key=repr)))


def _near_diagrams(problem: Problem, rng: np.random.Generator, count: int) -> list[CausalDiagram]:
    """Return ``count`` different diagrams: the true one, and random ones with one edge missing, added or reversed."""
    diagrams = [problem.scm.diagram]
    attempts_left = dict.fromkeys(CHANGES, _max_draws(problem) // MIN_DRAWS)
    # The first three entries of CHANGES change edges.
    for change in np.array(CHANGES)[rng.permuted(np.arange(MAX_DRAWS) % 3)]:
        if len(diagrams) >= count:
            return diagrams
        if not attempts_left[change]:
            continue
        try:
            diagram = wrong_diagram(problem, rng, {change: 1})
        # This error comes after many draws, so it may occur only a few times.
        except _NoSuchChangeError:
            attempts_left[change] -= 1
            continue
        except ArgumentError:
            continue
        if diagram not in diagrams:
            diagrams.append(diagram)
    raise ArgumentError(
        f"{problem.name} has {len(diagrams) - 1} graphs with one edge changed; given {count} candidates"
    )


def wrong_diagram(problem: Problem, rng: np.random.Generator, changes: Mapping[str, Change]) -> CausalDiagram:
    """Return the problem's diagram with changes, its nodes in topological order; see :func:`with_knowledge`.

    Random changes are drawn again while :func:`_find_flaw` finds a flaw, such as a cycle, in the diagram.

    Raises:
        ArgumentError: as :func:`with_knowledge`.
    """
    if all(is_whole_number(change) and not change for change in changes.values()):
        raise ArgumentError(f"a wrong graph needs a change; give one of {', '.join(CHANGES)} above 0")
    is_random = any(is_whole_number(change) and change for change in changes.values())
    reasons: dict[str, None] = {}
    for _ in range(_max_draws(problem) if is_random else 1):
        diagram = _change_diagram(problem, rng, changes)
        if (reason := _find_flaw(problem, diagram)) is None:
            return _sort_nodes(problem, diagram)
        reasons[reason] = None
    raise _NoSuchChangeError(f"no such change of the graph of {problem.name} is valid: {'; '.join(reasons)}")


def _max_draws(problem: Problem) -> int:
    return max(MIN_DRAWS, min(MAX_DRAWS, MAX_PAIRS // len(problem.scm.diagram.nodes) ** 2))


def _change_diagram(problem: Problem, rng: np.random.Generator, changes: Mapping[str, Change]) -> CausalDiagram:
    scm, reward = problem.scm, problem.scm.reward
    contexts = problem.data(Contexts)
    kept = {reward, *problem.manipulable, *scm.action_nodes, *(contexts.names if contexts else ())}
    omissible = [] if problem.data(SuperArms) else [name for name in scm.nodes if name not in kept]
    removed = _choose_items(rng, changes, "graph_omitted", omissible, "variables no action enters")
    diagram = scm.diagram.subgraph(set(scm.nodes) - set(removed)) if removed else scm.diagram
    edges = sorted(diagram.directed)
    missing = _choose_items(rng, changes, "graph_missing", edges, "edges")
    reversible = [edge for edge in edges if edge[1] != reward and edge not in missing]
    flipped = _choose_items(rng, changes, "graph_reversed", reversible, "other edges that do not lead into the reward")
    addable = _absent_edges(diagram.nodes, diagram.directed, reward)
    if is_whole_number(changes.get("graph_added", 0)):
        addable = _draw_directions(rng, addable)
    added = _choose_items(rng, changes, "graph_added", addable, "pairs to join")
    directed = diagram.directed - set(missing) - set(flipped) | {(b, a) for a, b in flipped} | set(added)
    return CausalDiagram(diagram.nodes, directed, diagram.bidirected, allow_cycles=True)


# Cache it, because it is the same for every draw.
@lru_cache(maxsize=1)
def _absent_edges(nodes: tuple[str, ...], directed: frozenset[Edge], reward: str) -> Sequence[Edge]:
    """Return the possible edges between unjoined nodes, in both directions except out of the reward."""
    pairs = [(a, b) for a in nodes for b in nodes if a != b and a != reward]
    return [(a, b) for a, b in pairs if not {(a, b), (b, a)} & directed]


def _draw_directions(rng: np.random.Generator, edges: Sequence[Edge]) -> list[Edge]:
    """Return one edge for each pair of nodes, in a random direction if both are among ``edges``."""
    edge_of_pair = {frozenset(edges[i]): edges[i] for i in rng.permutation(len(edges))}
    return sorted(edge_of_pair.values())


def _choose_items(
    rng: np.random.Generator, changes: Mapping[str, Change], keyword: str, choices: Sequence[Any], items_name: str
) -> list[Any]:
    """Return random items of ``choices`` if the change is their number, or the items that it lists; none by default.

    Raises:
        ArgumentError: if there are too few items, or an item is unknown.
    """
    change = changes.get(keyword, 0)
    if is_whole_number(change):
        count = whole_number(keyword, change, at_least=0)
        if count > len(choices):
            raise ArgumentError(
                f"{keyword} must be at most {len(choices)}, the number of {items_name}; given {short_repr(count)}"
            )
        return [choices[i] for i in rng.permutation(len(choices))[:count]]
    if not isinstance(change, list | tuple):
        raise ArgumentError(f"{keyword} must be a number or a list; given {short_repr(change)}")
    items = [tuple(item) if isinstance(item, list) else item for item in change]
    if unknown := [item for item in items if not _is_comparable(item) or item not in choices]:
        raise ArgumentError(
            f"{keyword} names {short_repr(unknown)}; choose from the {items_name} {short_repr(list(choices))}"
        )
    return list(dict.fromkeys(items))


def _is_comparable(value: object) -> bool:
    """Return whether a value is a name or a tuple of names; other values, such as arrays, may not support ``==``."""
    return isinstance(value, str) or (isinstance(value, tuple) and all(isinstance(name, str) for name in value))


def _find_flaw(problem: Problem, diagram: CausalDiagram) -> str | None:
    """Return why a diagram is not valid as agents' knowledge of the problem; None if it is valid."""
    reward, scm = problem.scm.reward, problem.scm
    if children := diagram.children(reward):
        return f"it has edges from the reward to {list(children)}"
    if scm.diagram.is_acyclic and not diagram.is_acyclic:
        return "it has a cycle"
    scopes = contexts.scopes if (contexts := problem.data(Contexts)) else ()
    if not all(_is_acyclic_under(diagram, scope) for scope in scopes):
        return "a scope makes a cycle in it"
    relevant = diagram.ancestors([reward])
    for acted_on in (problem.manipulable, scm.action_nodes):
        if acted_on and relevant.isdisjoint(acted_on):
            return "nothing that can be acted on affects the reward in it"
    return None


def _is_acyclic_under(diagram: CausalDiagram, scope: Any) -> bool:
    try:
        return scope_diagram(diagram, scope).is_acyclic
    except ArgumentError:
        return False


def _as_diagram(problem: Problem, candidate: Any) -> CausalDiagram:
    """Return the diagram of a candidate that the user lists as a diagram or as its directed edges."""
    truth = problem.scm.diagram
    if not isinstance(candidate, CausalDiagram):
        candidate = CausalDiagram(truth.nodes, _edges(candidate), truth.bidirected, allow_cycles=True)
    if set(candidate.nodes) != set(truth.nodes):
        raise ArgumentError(f"a candidate needs the nodes {list(truth.nodes)}; given {list(candidate.nodes)}")
    if reason := _find_flaw(problem, candidate):
        raise ArgumentError(f"{candidate} is not a candidate for the graph of {problem.name}: {reason}")
    return candidate


def _edges(value: Any) -> list[Edge]:
    edges = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
    edges = [tuple(edge) if isinstance(edge, list) else edge for edge in edges]
    if not all(isinstance(edge, tuple) and len(edge) == 2 and _is_comparable(edge) for edge in edges):
        raise ArgumentError(
            f"a candidate is a CausalDiagram or a list of edges (cause, effect); given {short_repr(value)}"
        )
    return edges


def _node_order(problem: Problem) -> tuple[str, ...]:
    """Return the observed variables in an order that does not depend on the graph, the reward last."""
    if problem.data(SuperArms):
        return problem.scm.nodes
    others = sorted(set(problem.scm.nodes) - {problem.scm.reward}, key=_natural_key)
    return (*others, problem.scm.reward)


def _natural_key(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts X2 before X10."""
    return [(int(chunk), "") if chunk.isdigit() else (0, chunk) for chunk in re.split(r"(\d+)", name) if chunk]


def _with_nodes(diagram: CausalDiagram, nodes: Sequence[str]) -> CausalDiagram:
    return CausalDiagram(nodes, diagram.directed, diagram.bidirected, allow_cycles=not diagram.is_acyclic)


def _sort_nodes(problem: Problem, diagram: CausalDiagram) -> CausalDiagram:
    """Return the diagram with its nodes in a topological order, if it has one, that depends on the diagram alone."""
    names = [name for name in _node_order(problem) if name in diagram.nodes]
    ordered = _with_nodes(diagram, names)
    if problem.data(SuperArms) or not diagram.is_acyclic:
        return ordered
    others = [name for name in ordered.topological_order if name != problem.scm.reward]
    return _with_nodes(diagram, [*others, problem.scm.reward])


def _keeps_composition(problem: Problem, knowledge: GraphKnowledge) -> bool:
    is_complete = knowledge.diagram is not None and len(knowledge.nodes) == len(problem.scm.nodes)
    return is_complete or problem.data(SuperArms) is not None


def _targets(problem: Problem, knowledge: GraphKnowledge) -> Sequence[frozenset[str]]:
    reward, targets = problem.scm.reward, problem.targets
    if not all(is_minimal(problem.scm.diagram, reward, target) for target in targets):
        # These sets do not come from the graph.
        return targets
    sets = _small_sets(list(problem.manipulable), max(map(len, targets), default=0))
    diagrams = [knowledge.diagram] if knowledge.diagram else knowledge.candidates
    if not diagrams:
        return sets
    return [target for target in sets if any(is_minimal(diagram, reward, target) for diagram in diagrams)]


def _small_sets(names: Sequence[str], largest: int) -> list[frozenset[str]]:
    """Return sets of up to ``largest`` names, smaller sets first; leave out sizes that would exceed ``MAX_TARGETS``."""
    sets: list[frozenset[str]] = []
    for size in range(largest + 1):
        sets_of_size = [frozenset(members) for members in combinations(names, size)]
        if len(sets) + len(sets_of_size) > MAX_TARGETS:
            break
        sets += sets_of_size
    return sets
