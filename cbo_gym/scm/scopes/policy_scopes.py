"""Which variables to intervene on, and depending on which contexts: mixed policy scopes (Lee & Bareinboim 2020).

A scope is a set of pairs (X; C_X): the variable X is set by a policy that sees the contexts C_X. In its diagram G_S the
edges from C_X to X replace all edges into X. A variable without a policy is *natural*: it follows its mechanism. The
value of a scope is the best E[Y] of its policies. :func:`pomps` uses steps from a scope to another one that is *at
least as good in every SCM* on the diagram:

* **Recall.** More contexts never hurt. Policies act in some order, and each may see what the earlier ones saw. So every
  scope is at most as good as a *complete* one: each variable sees all contexts that neither it nor a later one affects,
  and the earlier actions, which are functions of these.
* **Reduction.** With the actions in reverse order, contexts that are not requisite (Nielsen & Jensen 1999, Shachter
  1998) and policies that no longer affect Y are dropped. Optimal policies are deterministic, so an earlier action that
  is still seen can be computed from its own contexts: the value stays the same.
* **Takeover.** Let X be natural, and let W be observed variables that X does not affect, such that Y is independent of
  X given W once the edges out of X are cut (second rule of do-calculus). Then setting X by the policy P(x | w), as its
  mechanism does, yields the same E[Y]. W may contain variables that are taken over too, earlier in causal order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import TypeVar

import networkx as nx

from cbo_gym.errors import ArgumentError
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.scopes.intervention_sets import check_manipulable, subsets

Scope = frozenset[tuple[str, frozenset[str]]]
# Variable -> contexts, in the order of action.
Policies = dict[str, frozenset[str]]
# Keeps Python from looking for modules in the working directory.
SAFE_PATH = "PYTHONSAFEPATH"
Item = TypeVar("Item")
Result = TypeVar("Result")


def scope_diagram(diagram: CausalDiagram, scope: Scope) -> CausalDiagram:
    """Return G_S, the diagram under the policies of a scope (Lee & Bareinboim 2020, Definition 1).

    Raises:
        ArgumentError: for unknown variables, a variable with two policies, or a scope that would create a cycle.
    """
    policies = dict(scope)
    if len(policies) < len(scope):
        raise ArgumentError(f"a scope has one policy per variable; given {_show(scope)}")
    try:
        return diagram.with_inputs(policies)
    except ValueError as error:
        raise ArgumentError(f"not a mixed policy scope: {_show(scope)}; {error}") from None


def mixed_policy_scopes(
    diagram: CausalDiagram,
    reward: str,
    manipulable: Iterable[str] | None = None,
    contexts: Iterable[str] | None = None,
) -> set[Scope]:
    """Return all mixed policy scopes: every choice of variables and contexts whose diagram G_S is acyclic.

    There are up to (1 + 2^contexts)^manipulable of them, so this is for small diagrams. Arguments and errors are those
    of :func:`pomps`.
    """
    setting = _Setting.of(diagram, reward, manipulable, contexts)
    scopes: set[Scope] = set()
    names = sorted(setting.manipulable)
    for chosen in product(*([None, *subsets(sorted(setting.contexts - {name}))] for name in names)):
        policies = dict(zip(names, chosen, strict=True))
        scope = frozenset((name, seen) for name, seen in policies.items() if seen is not None)
        context_edges = [(context, name) for name, seen in scope for context in seen]
        natural_edges = [edge for edge in setting.diagram.directed if policies.get(edge[1]) is None]
        if nx.is_directed_acyclic_graph(nx.DiGraph(natural_edges + context_edges)):
            scopes.add(scope)
    return scopes


def pomps(
    diagram: CausalDiagram,
    reward: str,
    manipulable: Iterable[str] | None = None,
    contexts: Iterable[str] | None = None,
    n_jobs: int = 1,
) -> set[Scope]:
    """Return the possibly-optimal mixed policy scopes (Lee & Bareinboim 2020).

    For every SCM on the diagram the best value over the scopes returned equals the best over all scopes: the steps of
    this module lead from each scope to one of them, and from none of them to another one. No theorem says whether each
    is the best in some SCM. Without contexts they are the :func:`pomis`.

    The search is over the variables that a scope leaves natural. As in the recursion of :func:`pomis`, those that can
    be taken over whatever happens to the others are taken over at once, and the rest one at a time.

    Args:
        diagram: an acyclic causal diagram.
        reward: the variable Y to be maximised.
        manipulable: the variables that may be set; None for all but the reward.
        contexts: the variables that policies may see; None for those that are neither manipulable nor the reward.
            A manipulable context may be seen if it is left natural.
        n_jobs: number of processes, as in joblib: -1 for one per core.

    Returns:
        the scopes, at least one, each a frozenset of pairs (variable, frozenset of its contexts). The empty scope
        means: only observe.

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
        for scope, improvements in zip(ordered, _map(setting.improvements, ordered, n_jobs), strict=True):
            better.add_edges_from((scope, improved) for improved in improvements)
        new = set(better) - visited
    groups = nx.condensation(better)
    sinks = [groups.nodes[group]["members"] for group in groups if not groups.out_degree(group)]
    return {min(equal, key=_simplicity) for equal in sinks}


@dataclass(frozen=True)
class _Setting:
    """The arguments of :func:`pomps`, with variables that are neither set nor seen projected out."""

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
        # Raises for unknown names.
        diagram.ancestors(seen)
        if reward in seen:
            raise ArgumentError(f"the reward {reward!r} cannot be a context; contexts: {sorted(seen)}")
        return cls(diagram.latent_projection(set(diagram.nodes) - actions - seen - {reward}), reward, actions, seen)

    @cached_property
    def readable(self) -> dict[str, frozenset[str]]:
        """Variable -> the contexts that its policy may see in some scope, because the variable need not affect them."""
        free = self.diagram.mutilate(self.manipulable)
        return {name: self.contexts - free.descendants([name]) for name in self.manipulable}

    def complete_scopes(self, natural: frozenset[str]) -> set[Scope]:
        """Return the complete scopes that leave ``natural`` alone, one per order of action, reduced."""
        return {self.reduce(policies) for policies in self._complete(self.manipulable - natural, {})}

    def _complete(self, acting: frozenset[str], needed: Mapping[str, frozenset[str]]) -> Iterator[Policies]:
        """Yield the complete scopes over ``acting`` in which policies see at least the ``needed`` contexts.

        If one variable affects all contexts that another one affects, it acts first; between others the order matters.
        """
        contexts = self.contexts - acting
        cut = self.diagram.mutilate(acting)
        groups: dict[frozenset[str], list[str]] = {}
        for name in sorted(acting):
            groups.setdefault(cut.descendants([name]) & contexts, []).append(name)
        supersets_first = nx.DiGraph((larger, smaller) for larger in groups for smaller in groups if larger > smaller)
        supersets_first.add_nodes_from(groups)
        for order in nx.all_topological_sorts(supersets_first):
            hidden: frozenset[str] = frozenset()
            seen = {}
            for affected in reversed(order):
                hidden |= affected
                seen[affected] = contexts - hidden
            policies = {name: seen[affected] for affected in order for name in groups[affected]}
            if all(needed[name] <= policies[name] for name in needed):
                yield policies

    def reduce(self, policies: Policies) -> Scope:
        """Remove the contexts and policies of a complete scope that its value does not need."""
        order = list(policies)
        # What each policy sees: contexts, and earlier actions.
        seen = {name: policies[name] | set(order[:index]) for index, name in enumerate(order)}
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
        """Return scopes that are at least as good: other orders of action, and takeovers.

        Takeovers are tried with the variables that affect the reward, and with all: a variable that does not affect the
        reward may still make a context informative, also a context that an action affects and therefore cannot see.
        """
        policies = dict(scope)
        diagram = self.diagram.with_inputs(policies)
        natural = [name for name in diagram.topological_order if name in self.manipulable and name not in policies]
        affecting = diagram.ancestors([self.reward])
        better = set()
        for candidates in (natural, [name for name in natural if name in affecting]):
            taken = _takeovers(diagram, self.reward, candidates, self.contexts.union(policies), {})
            extended = _of_contexts({**policies, **taken})
            better |= {self.reduce(complete) for complete in self._complete(frozenset(extended), extended)}
        return better


def _territories(setting: _Setting) -> set[frozenset[str]]:
    """Return the sets of variables that may be worth leaving natural."""
    order = [name for name in setting.diagram.topological_order if name in setting.manipulable]
    territories: set[frozenset[str]] = set()
    pending = {setting.manipulable}
    visited = set(pending)
    while pending:
        natural = pending.pop()
        forced = setting.manipulable - natural
        readable = {name: seen - forced for name, seen in setting.readable.items()}
        cut = setting.diagram.mutilate(forced)
        added = {(cause, name) for name, causes in readable.items() for cause in causes}
        extended = CausalDiagram(cut.nodes, cut.directed | added, cut.bidirected, allow_cycles=True)
        usable = setting.contexts | forced
        taken = _takeovers(extended, setting.reward, [name for name in order if name in natural], usable, readable)
        natural = natural.difference(taken)
        territories.add(natural)
        new = {natural - {name} for name in natural} - visited
        visited |= new
        pending |= new
    return territories


def _takeovers(
    diagram: CausalDiagram,
    reward: str,
    candidates: Sequence[str],
    usable: frozenset[str],
    readable: Mapping[str, frozenset[str]],
) -> Policies:
    """Return natural variables that can be taken over together without loss, with the contexts of their policies.

    The last variable in causal order is taken over first: its policy may see the others, and it is no longer confounded
    when these follow. If a variable cannot be taken over, it stays natural, and the search starts again without it.

    Args:
        diagram: the diagram of the scope.
        reward: the reward.
        candidates: natural variables, in causal order.
        usable: the variables that policies may see, besides other candidates.
        readable: variable -> further inputs of its policy.
    """
    remaining = list(candidates)
    while True:
        current, policies = diagram, {}
        for index, name in reversed(list(enumerate(remaining))):
            allowed = usable.union(remaining[:index]) - current.descendants([name])
            cut = current.without_effects([name])
            contexts = allowed & cut.ancestors([name, reward])
            if not cut.m_separated([name], [reward], contexts):
                remaining.remove(name)
                break
            policies[name] = contexts
            current = current.with_inputs({name: contexts | readable.get(name, frozenset())})
        else:
            return policies


def _of_contexts(policies: Policies) -> Policies:
    """Return the policies with each action that they see replaced by the contexts of that action's policy."""
    resolved: Policies = {}

    def resolve(name: str) -> frozenset[str]:
        if name not in resolved:
            sources = (resolve(seen) if seen in policies else frozenset([seen]) for seen in policies[name])
            resolved[name] = frozenset(chain.from_iterable(sources))
        return resolved[name]

    return {name: resolve(name) for name in policies}


def _simplicity(scope: Scope) -> tuple[int, int, list[tuple[str, list[str]]]]:
    """Sort key: fewer variables, then fewer contexts, then by name."""
    return len(scope), sum(len(seen) for _, seen in scope), sorted((name, sorted(seen)) for name, seen in scope)


def _show(scope: Scope) -> str:
    pairs = sorted((name, sorted(seen)) for name, seen in scope)
    return "{" + ", ".join(f"({name}; {', '.join(seen)})" for name, seen in pairs) + "}"


def _map(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int) -> list[Result]:
    if n_jobs == 1:
        return [function(item) for item in items]
    from joblib import Parallel, delayed

    previous_value = os.environ.get(SAFE_PATH)
    # Joblib starts its processes with "python -m".
    os.environ[SAFE_PATH] = "1"
    try:
        return Parallel(n_jobs=n_jobs)(delayed(function)(item) for item in items)
    finally:
        if previous_value is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = previous_value
