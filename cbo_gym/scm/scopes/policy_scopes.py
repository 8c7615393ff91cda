"""Which variables to intervene on, and upon seeing what: mixed policy scopes (Lee & Bareinboim 2020).

A scope is a set of pairs (X; C_X): the variable X is set by a policy that sees the contexts C_X. Its diagram G_S has
the edges from C_X to X in place of all that entered X. The value of a scope is the best E[Y] that its policies reach.
:func:`pomps` rests on steps from a scope to another one that is *at least as good in every SCM* on the diagram:

* **Recall.** More contexts never hurt. Policies act in some order, and each may see what the earlier ones saw. So every
  scope is at most as good as a *complete* one: each variable sees all contexts that neither it nor a later one affects,
  and the earlier actions, which are functions of these.
* **Reduction.** With the actions in reverse order, contexts that are not requisite (Nielsen & Jensen 1999, Shachter
  1998) are dropped, and policies that no longer affect Y. Optimal policies are deterministic, so an earlier action that
  is still seen can be computed from its own contexts: the value stays the same.
* **Takeover.** Let X be natural, and W be observed, not affected by X, with Y independent of X given W once the edges
  that leave X are cut (second rule of do-calculus). Then the policy P(x | w) of the natural mechanism yields the same
  E[Y]. W may hold variables that are taken over too, earlier in causal order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, product
from typing import TypeVar

import networkx as nx

from cbo_gym.errors import ArgumentError
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.scopes.intervention_sets import check_manipulable

Scope = frozenset[tuple[str, frozenset[str]]]
Policies = dict[str, frozenset[str]]  # variable -> contexts, in the order of action
# Keeps Python from looking for modules in the working directory.
SAFE_PATH = "PYTHONSAFEPATH"
Item = TypeVar("Item")
Result = TypeVar("Result")


def scope_diagram(diagram: CausalDiagram, scope: Scope) -> CausalDiagram:
    """G_S, the diagram under the policies of a scope (Lee & Bareinboim 2020, Definition 1).

    Raises:
        ArgumentError: for unknown variables, a variable with two policies, or a scope that would create a cycle.
    """
    policies = dict(scope)
    if len(policies) < len(scope):
        raise ArgumentError(f"a scope has one policy per variable; given {_show(scope)}")
    try:
        return diagram.with_inputs(policies)
    except ValueError as error:
        raise ArgumentError(f"no mixed policy scope: {_show(scope)}; {error}") from None


def mixed_policy_scopes(
    diagram: CausalDiagram,
    reward: str,
    manipulable: Iterable[str] | None = None,
    contexts: Iterable[str] | None = None,
) -> set[Scope]:
    """All mixed policy scopes: every choice of variables and contexts whose diagram G_S is acyclic.

    There are up to (1 + 2^contexts)^manipulable of them, so this is for small diagrams.

    Args and errors: as of :func:`pomps`.
    """
    setting = _Setting.of(diagram, reward, manipulable, contexts)
    found: set[Scope] = set()
    names = sorted(setting.manipulable)
    for chosen in product(*([None, *_subsets(setting.contexts - {name})] for name in names)):
        policies = dict(zip(names, chosen, strict=True))
        scope = frozenset((name, seen) for name, seen in policies.items() if seen is not None)
        edges = [(context, name) for name, seen in scope for context in seen]
        kept = [edge for edge in setting.diagram.directed if policies.get(edge[1]) is None]
        if nx.is_directed_acyclic_graph(nx.DiGraph(kept + edges)):
            found.add(scope)
    return found


def pomps(
    diagram: CausalDiagram,
    reward: str,
    manipulable: Iterable[str] | None = None,
    contexts: Iterable[str] | None = None,
    n_jobs: int = 1,
) -> set[Scope]:
    """Possibly-optimal mixed policy scopes (Lee & Bareinboim 2020).

    For every SCM on the diagram the best value over the scopes returned equals the best over all scopes: each scope
    leads to one of them by the steps of this module. None of them leads to another one by these steps; whether each
    is the best one in some SCM is not decided by a theorem. With no contexts they are the :func:`pomis`.

    Scopes are told apart by the variables that they leave natural. As in the recursion of :func:`pomis`, those that
    can be taken over whatever is done about the others are taken over at once, and the rest one at a time.

    Args:
        diagram: an acyclic causal diagram.
        reward: the variable Y to be maximised.
        manipulable: the variables that may be set; None for all but the reward.
        contexts: the variables that policies may see; None for those that are neither manipulable nor the reward.
            A manipulable one among them may be seen where it is left natural.
        n_jobs: processes, as in joblib: -1 for one per core.

    Returns:
        the scopes, at least one, each a frozenset of pairs (variable, frozenset of its contexts). The empty scope
        among them means: observe.

    Raises:
        ArgumentError: for a cyclic diagram, unknown variables, or a reward that is manipulable or a context.
    """
    setting = _Setting.of(diagram, reward, manipulable, contexts)
    better = nx.DiGraph()
    visited: set[Scope] = set()
    new = set(chain.from_iterable(_map(setting.complete_scopes, _territories(setting), n_jobs)))
    while new:
        ordered = sorted(new, key=_simplicity)
        visited |= new
        better.add_nodes_from(ordered)
        for scope, above in zip(ordered, _map(setting.improvements, ordered, n_jobs), strict=True):
            better.add_edges_from((scope, other) for other in above)
        new = set(better) - visited
    groups = nx.condensation(better)
    sinks = [groups.nodes[group]["members"] for group in groups if not groups.out_degree(group)]
    return {min(equal, key=_simplicity) for equal in sinks}


@dataclass(frozen=True)
class _Setting:
    """The question to :func:`pomps`, without the variables that are neither set nor seen."""

    diagram: CausalDiagram
    reward: str
    manipulable: frozenset[str]
    contexts: frozenset[str]

    @classmethod
    def of(
        cls,
        diagram: CausalDiagram,
        reward: str,
        manipulable: Iterable[str] | None,
        contexts: Iterable[str] | None,
    ) -> _Setting:
        actions = check_manipulable(diagram, reward, manipulable)
        seen = frozenset(diagram.nodes) - actions - {reward} if contexts is None else frozenset(contexts)
        diagram.ancestors(seen)  # raises for unknown names
        if reward in seen:
            raise ArgumentError(f"the reward {reward!r} cannot be a context; contexts: {sorted(seen)}")
        return cls(diagram.latent_projection(set(diagram.nodes) - actions - seen - {reward}), reward, actions, seen)

    @cached_property
    def readable(self) -> dict[str, frozenset[str]]:
        """Variable -> the contexts that some policy of it may see: those that it does not always affect."""
        free = self.diagram.mutilate(self.manipulable)
        return {name: self.contexts - free.descendants([name]) for name in self.manipulable}

    def complete_scopes(self, natural: frozenset[str]) -> set[Scope]:
        """The complete scopes that leave ``natural`` alone, one an order of action, reduced."""
        return {self.reduce(policies) for policies in self._complete(self.manipulable - natural, {})}

    def _complete(self, acting: frozenset[str], needed: Mapping[str, frozenset[str]]) -> Iterator[Policies]:
        """The complete scopes over ``acting`` in which policies see at least what they ``need``.

        The order matters between variables neither of which affects all contexts that the other one affects; of two
        others the one that affects more acts first.
        """
        contexts = self.contexts - acting
        cut = self.diagram.mutilate(acting)
        alike: dict[frozenset[str], list[str]] = {}
        for name in sorted(acting):
            alike.setdefault(cut.descendants([name]) & contexts, []).append(name)
        for order in _larger_first(frozenset(alike)):
            hidden: frozenset[str] = frozenset()
            seen = {}
            for affected in reversed(order):
                hidden |= affected
                seen[affected] = contexts - hidden
            policies = {name: seen[affected] for affected in order for name in alike[affected]}
            if all(needed[name] <= policies[name] for name in needed):
                yield policies

    def reduce(self, policies: Policies) -> Scope:
        """A complete scope without the contexts and the policies that its value does not need.

        Args:
            policies: the scope, its variables in the order of action.
        """
        order = list(policies)
        seen = {name: policies[name] | set(order[:place]) for place, name in enumerate(order)}
        idle = set()
        for name in reversed(order):
            diagram = self.diagram.with_inputs(seen)
            if name in diagram.ancestors([self.reward]):
                seen[name] &= diagram.m_connected([self.reward], seen[name] | {name})
            else:
                seen[name] = frozenset()
                idle.add(name)
        return frozenset(_of_contexts({name: seen[name] for name in order if name not in idle}).items())

    def improvements(self, scope: Scope) -> set[Scope]:
        """Scopes that are at least as good: other orders of action, and takeovers.

        Once with takeovers of what affects the reward alone, and once with all: a variable that does not affect the
        reward may still make a context telling, or make it one that an action affects and so cannot see.
        """
        policies = dict(scope)
        diagram = self.diagram.with_inputs(policies)
        natural = [name for name in diagram.topological_order if name in self.manipulable and name not in policies]
        affecting = diagram.ancestors([self.reward])
        found = set()
        for candidates in (natural, [name for name in natural if name in affecting]):
            taken = _takeovers(diagram, self.reward, candidates, self.contexts.union(policies), {})
            extended = _of_contexts({**policies, **taken})
            found |= {self.reduce(complete) for complete in self._complete(frozenset(extended), extended)}
        return found


def _territories(setting: _Setting) -> set[frozenset[str]]:
    """The sets of variables that may be worth leaving natural."""
    order = [name for name in setting.diagram.topological_order if name in setting.manipulable]
    found: set[frozenset[str]] = set()
    pending = {setting.manipulable}
    visited = set(pending)
    while pending:
        natural = pending.pop()
        forced = setting.manipulable - natural
        readable = {name: seen - forced for name, seen in setting.readable.items()}
        loose = _with_more_inputs(setting.diagram.mutilate(forced), readable)
        usable = setting.contexts | forced
        taken = _takeovers(loose, setting.reward, [name for name in order if name in natural], usable, readable)
        natural = natural.difference(taken)
        found.add(natural)
        new = {natural - {name} for name in natural} - visited
        visited |= new
        pending |= new
    return found


def _with_more_inputs(diagram: CausalDiagram, inputs: Mapping[str, frozenset[str]]) -> CausalDiagram:
    """``diagram`` with edges added; it may become cyclic."""
    added = {(cause, name) for name, causes in inputs.items() for cause in causes}
    return CausalDiagram(diagram.nodes, diagram.directed | added, diagram.bidirected, allow_cycles=True)


def _takeovers(
    diagram: CausalDiagram,
    reward: str,
    candidates: Sequence[str],
    usable: frozenset[str],
    readable: Mapping[str, frozenset[str]],
) -> Policies:
    """Natural variables that can be taken over together without loss, with what their policies see.

    The last one in causal order goes first: its policy may see the others, and no longer depends on what confounds
    it when their turn comes. If one fails it stays natural, and all starts again without it.

    Args:
        candidates: natural variables, in causal order.
        usable: the variables that policies may see, besides other candidates.
        readable: variable -> what else its policy may depend on.
    """
    left = list(candidates)
    while True:
        current, policies = diagram, {}
        for place, name in reversed(list(enumerate(left))):
            allowed = usable.union(left[:place]) - current.descendants([name])
            quiet = current.without_effects([name])
            given = allowed & quiet.ancestors([name, reward])
            if not quiet.m_separated([name], [reward], given):
                left.remove(name)
                break
            policies[name] = given
            current = current.with_inputs({name: given | readable.get(name, frozenset())})
        else:
            return policies


def _of_contexts(policies: Policies) -> Policies:
    """The same policies as functions of contexts: actions that they see are replaced by what these are functions of."""
    resolved: Policies = {}

    def resolve(name: str) -> frozenset[str]:
        if name not in resolved:
            sources = (resolve(seen) if seen in policies else frozenset([seen]) for seen in policies[name])
            resolved[name] = frozenset(chain.from_iterable(sources))
        return resolved[name]

    return {name: resolve(name) for name in policies}


def _larger_first(sets: frozenset[frozenset[str]]) -> Iterator[list[frozenset[str]]]:
    """All orders of the sets in which each comes before its proper subsets."""
    if not sets:
        yield []
    for first in sorted(sets, key=sorted):
        if not any(first < other for other in sets):
            for rest in _larger_first(sets - {first}):
                yield [first, *rest]


def _subsets(names: Iterable[str]) -> list[frozenset[str]]:
    listed = sorted(names)
    return [frozenset(chosen) for size in range(len(listed) + 1) for chosen in combinations(listed, size)]


def _simplicity(scope: Scope) -> tuple[int, int, list[tuple[str, list[str]]]]:
    """Fewer variables, then fewer contexts, then by name."""
    return len(scope), sum(len(seen) for _, seen in scope), sorted((name, sorted(seen)) for name, seen in scope)


def _show(scope: Scope) -> str:
    pairs = sorted((name, sorted(seen)) for name, seen in scope)
    return "{" + ", ".join(f"({name}; {', '.join(seen)})" for name, seen in pairs) + "}"


def _map(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int) -> list[Result]:
    if n_jobs == 1:
        return [function(item) for item in items]
    from joblib import Parallel, delayed

    before = os.environ.get(SAFE_PATH)
    # joblib starts its processes with "python -m".
    os.environ[SAFE_PATH] = "1"
    try:
        return Parallel(n_jobs=n_jobs)(delayed(function)(item) for item in items)
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before
