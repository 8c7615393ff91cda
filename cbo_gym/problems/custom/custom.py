"""Custom problems: a :class:`Problem` from one Python function per variable, instead of a named benchmark system.

The functions' argument names are the causal diagram. :mod:`.problem_file` reads the same from YAML files of equations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx

from cbo_gym.actions import Domains, Interval, Limits, TypedDomain
from cbo_gym.actions.domains import read_domain
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.problems.base import Problem, gaussian_noise, minimal_targets, require_interval
from cbo_gym.problems.custom.abduction import Abduction
from cbo_gym.problems.custom.elementwise import elementwise
from cbo_gym.problems.custom.expression import spelling
from cbo_gym.problems.modes.contextual import Columns, Contexts
from cbo_gym.problems.modes.discrete import Arms
from cbo_gym.scm import CausalDiagram, Distribution, Floats, GuardedModel, Variable, Zero
from cbo_gym.scm.scopes import Scope

# The argument of a mechanism that stands for the variable's own exogenous noise.
OWN_NOISE = "u"

# Distribution of each variable, or the standard deviation of a normal one.
NoiseOf = Mapping[str, Distribution | float]
NoiseGiven = Callable[[Columns, Columns], Columns]


def custom_problem(
    mechanisms: Mapping[str, Callable[..., Floats]],
    *,
    reward: str,
    noise: NoiseOf | None = None,
    diagram: Any = None,
    actions: Mapping[str, Interval] | None = None,
    manipulable: Mapping[str, Interval] | None = None,
    targets: Iterable[Iterable[str]] | None = None,
    contexts: Iterable[str] = (),
    scopes: Iterable[Mapping[str, Iterable[str]]] | None = None,
    noise_given: NoiseGiven | None = None,
    arms: Iterable[Mapping[str, float]] = (),
    latent: Iterable[str] = (),
    limits: Iterable[str] = (),
    name: str = "Custom",
    description: str = "",
) -> Problem:
    """Return a Problem from one function per variable, whose argument names say what the variable depends on.

    An argument is the name of another variable, the name of a soft parameter (a number that an action chooses), or
    ``u``, the variable's own noise. Arguments with other names need a default. Mechanisms built from arithmetic and
    NumPy ufuncs take numbers and arrays alike::

        custom_problem(
            {
                "Growth": lambda heat, u: np.exp(-((heat - 22) ** 2) / 50) + u,
                "Yield": lambda Growth, price: Growth * price - 0.1 * price**2,
            },
            reward="Yield",
            noise={"Growth": 0.1},
            actions={"heat": (10.0, 30.0), "price": (0.0, 8.0)},
        )

    Each mechanism is tried on a few numbers and on arrays of them. A mechanism that fails on arrays (``if``,
    :func:`math.exp`) or mixes their entries (``np.max(x)``) is called number by number, which is much slower; use
    ``np.where``, ``np.exp`` and ``np.maximum`` instead. If a value is not a finite real number, ``step`` raises an
    error that names its variable, and the round is not played.

    Args:
        mechanisms: variable, observed or latent -> function.
        reward: the variable to maximise; variables that depend on it are left out, because they cannot change it.
        noise: variable -> distribution of its ``u``, or the standard deviation of a zero-mean normal one.
        diagram: causal diagram over the observed variables, with which the diagram of the mechanisms must agree, in any
            form that :meth:`cbo_gym.scm.CausalDiagram.read` takes; None for no check.
        actions: soft parameter -> its domain, in the order of the action's coordinates: native ``(low, high)``, a
            :class:`~cbo_gym.actions.Range` with a step or a logarithmic scale, an :class:`~cbo_gym.actions.Integer`, or
            a :class:`~cbo_gym.actions.Categorical`. A mechanism gets the index of a category.
        manipulable: variable -> the domain of its hard interventions, in the same forms.
        targets: the sets of variables that a hard intervention may set; the empty set lets a round only observe. None
            for the minimal intervention sets of the manipulable variables.
        contexts: variables that are observed before acting, in contextual mode; such a problem has no ``actions``.
        scopes: the policy scopes, at most 1,024, each a mapping from the variables that are set to the contexts
            on which their values may depend, ``{}`` to only observe. None for a scope for each set of ``targets``, in
            which values may depend on all contexts that the variables do not affect.
        noise_given: the noise given the contexts, as in :class:`~cbo_gym.problems.modes.contextual.Contexts`. None
            to recover it from the contexts, see :class:`~cbo_gym.problems.custom.abduction.Abduction`.
        arms: the interventions of the discrete mode, each a mapping from variables to the values that they are set to,
            ``{}`` to only observe. The reward must then be in [0, 1].
        latent: variables that are not observed.
        limits: limits on the values that an action sets, soft parameters or manipulable variables, such as
            ``"heat <= 2 * price"`` or ``"at most 2 of a, b, c"``, see :mod:`cbo_gym.actions.limits`.
        name: name of the problem.
        description: description for users.

    Raises:
        ArgumentError: naming the item that is unknown, unused, missing, of a wrong type, or contradicts the diagram;
            for a cycle; for a reward that is not observed; for a mechanism that gives no number, or two for the same
            arguments; for more than 1024 minimal intervention sets.
    """
    mechanisms, noise = _read_mapping("mechanisms", mechanisms), _read_mapping("noise", noise)
    actions, manipulable = _read_domains("actions", actions), _read_domains("manipulable", manipulable)
    hidden, context_names = _read_names("latent", latent), _read_names("contexts", contexts)
    for argument, string in (("reward", reward), ("name", name), ("description", description)):
        if not isinstance(string, str):
            raise ArgumentError(f"{argument} must be a string; given {short_repr(string)}")
    names_in = {"noise": noise, "latent": hidden, "contexts": context_names, "manipulable": manipulable}
    for argument, names in {"reward": [reward], **names_in}.items():
        if unknown := sorted(map(str, set(names) - set(mechanisms))):
            raise ArgumentError(f"{argument} names {unknown}; the variables are {list(mechanisms)}")
    if clash := sorted(set(mechanisms) & set(actions)):
        raise ArgumentError(f"{clash} are both variables and soft parameters; rename one of them")
    if OWN_NOISE in (spelled := spelling([*mechanisms, *actions])):
        raise ArgumentError(f"{spelled[OWN_NOISE]!r} cannot be a name: {OWN_NOISE} stands for a variable's own noise")
    arguments_of = {
        variable: _arguments_of(variable, function, spelled, variable in noise)
        for variable, function in mechanisms.items()
    }
    effects = _effects_of(reward, arguments_of)
    for argument in ("contexts", "manipulable"):
        if wrong := [name for name in names_in[argument] if name in effects]:
            raise ArgumentError(f"{argument} names {wrong}, effects of the reward {reward}, which cannot change it; "
                                f"leave {'it' if len(wrong) == 1 else 'them'} out")  # fmt: skip
    model_names = [name for name in mechanisms if name not in effects]
    variables = [
        _make_variable(
            name, mechanisms[name], arguments_of[name], model_names, list(actions), noise.get(name), name not in hidden
        )
        for name in model_names
    ]
    used = {index for variable in variables for index in variable.actions}
    if unused := [action for index, action in enumerate(actions) if index not in used]:
        before = f" on which the reward depends, as {sorted(effects)} do not," if effects else ""
        raise ArgumentError(f"no mechanism{before} takes the soft parameters {unused}; use or remove them")
    ordered = GuardedModel(variables, reward).variables
    scm = GuardedModel(list(elementwise(ordered, manipulable, list(actions.values()))), reward)
    if diagram is not None:
        declared_diagram = CausalDiagram.read(diagram)
        _require_equal(declared_diagram.subgraph(set(declared_diagram.nodes) - effects), scm.diagram)
    target_sets = minimal_targets(scm.diagram, scm.reward, manipulable) if targets is None else _read_targets(targets)
    limit_strings = _read_names("limits", [limits] if isinstance(limits, str) else limits)
    if limit_strings and targets is None and not actions:
        limits_of_sets = Limits(limit_strings, Domains(manipulable))
        target_sets = [target for target in target_sets if limits_of_sets.can_set(target)]
    modes = _read_arms(arms), _read_contexts(scm, context_names, scopes, noise_given, target_sets)
    return Problem(
        name=name,
        scm=scm,
        description=description,
        citation="your own",
        action_domains=list(actions.values()),
        action_names=list(actions),
        manipulable=manipulable,
        targets=target_sets,
        limits=tuple(limit_strings),
        modes=[data for data in modes if data is not None],
    )


def _read_mapping(argument: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
    if not isinstance(value, Mapping | None):
        raise ArgumentError(f"{argument} must be a mapping by name, {{name: ...}}; given {short_repr(value)}")
    mapping = dict(value or {})
    _read_names(f"the keys of {argument}", list(mapping))
    return mapping


def _read_domains(argument: str, value: Mapping[str, Interval] | None) -> dict[str, Interval]:
    domains: dict[str, Interval] = {}
    for name, bounds in _read_mapping(argument, value).items():
        try:
            domain = read_domain(bounds)
        except ArgumentError as error:
            raise ArgumentError(f"{argument}: the domain of {name!r}: {error}") from error
        require_interval(f"{argument}: the domain of {name!r}", domain)
        domains[name] = domain if isinstance(domain, TypedDomain) else (float(domain[0]), float(domain[1]))
    return domains


def _read_names(argument: str, value: Iterable[str]) -> list[str]:
    is_list = isinstance(value, Iterable) and not isinstance(value, str)
    names = list(value) if is_list else []
    if not is_list or not all(isinstance(name, str) and name for name in names):
        raise ArgumentError(f"{argument} must be a list of names; given {short_repr(value)}")
    return names


def _read_targets(targets: Iterable[Iterable[str]]) -> list[frozenset[str]]:
    if not isinstance(targets, Iterable) or isinstance(targets, str):
        raise ArgumentError(f"targets must be a list of sets of names, as [[], ['X']]; given {short_repr(targets)}")
    return [frozenset(_read_names("every set of targets", target)) for target in targets]


def _read_arms(arms: Iterable[Mapping[str, float]]) -> Arms | None:
    if not isinstance(arms, Iterable) or isinstance(arms, str | Mapping):
        raise ArgumentError(f"arms must be a list of mappings, as [{{}}, {{'X': 1}}]; given {short_repr(arms)}")
    interventions = [_read_mapping("every arm", arm) for arm in arms]
    return Arms(interventions) if interventions else None


def _require_equal(declared: CausalDiagram, derived: CausalDiagram) -> None:
    differences = []
    if different := set(declared.nodes) ^ set(derived.nodes):
        differences.append(f"variables {sorted(different)} are in one of them only")
    edges = [{" -> ".join(edge) for edge in diagram.directed} for diagram in (declared, derived)]
    pairs = [{" <-> ".join(sorted(pair)) for pair in diagram.bidirected} for diagram in (declared, derived)]
    for items, (in_diagram, in_mechanisms) in (("edges", edges), ("confounded pairs", pairs)):
        if in_diagram != in_mechanisms:
            differences.append(f"{items} only in the diagram {sorted(in_diagram - in_mechanisms)}, only in the "
                               f"mechanisms {sorted(in_mechanisms - in_diagram)}")  # fmt: skip
    if differences:
        raise ArgumentError("the diagram and the mechanisms disagree: " + "; ".join(differences))


def _make_variable(
    name: str,
    function: Callable[..., Floats],
    arguments: Mapping[str, str],
    variables: list[str],
    actions: list[str],
    noise: Distribution | float | None,
    observed: bool,
) -> Variable:
    """Return a variable, given its function's :func:`_arguments_of` and all variables and soft parameters by name."""
    names = list(arguments.values())
    if unknown := [a for a in names if a not in (*variables, *actions, OWN_NOISE)]:
        raise ArgumentError(
            f"the mechanism of {name} takes {unknown}, which are neither variables {variables}, "
            f"soft parameters {actions}, nor {OWN_NOISE!r} for its noise"
        )
    if noise is None and OWN_NOISE in names:
        raise ArgumentError(f"the mechanism of {name} takes u, but there is no noise; give both or neither")
    if noise is not None and OWN_NOISE not in names:
        raise ArgumentError(f"the mechanism of {name} does not take u, but there is noise; give both or neither")
    if not isinstance(noise, Distribution):
        noise = Zero() if noise is None else gaussian_noise(noise, f"the noise of {name}")
    parents = [a for a in names if a in variables]
    parameters = [a for a in names if a in actions]
    return Variable(
        name,
        _reorder_arguments(function, arguments, [*parents, *parameters, OWN_NOISE]),
        parents=tuple(parents),
        actions=tuple(actions.index(a) for a in parameters),
        noise=noise,
        observed=observed,
    )


def _arguments_of(
    name: str, function: Callable[..., Floats], spelled: Mapping[str, str], noisy: bool
) -> dict[str, str]:
    """Return the parameters that are passed to the function -> the variables, soft parameters or u that they are."""
    advice = "give a function whose argument names say what it depends on, as lambda dose, u: np.exp(dose) + u"
    if not callable(function):
        equations = "; a YAML file has equations as strings, see the guide" if isinstance(function, str) else ""
        raise ArgumentError(
            f"the mechanism of {name} must be a function; given {short_repr(function)}; {advice}{equations}"
        )
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"the mechanism of {name}, {function!r}, has no signature; {advice}") from error
    if unnamed := [str(p) for p in parameters if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]:
        raise ArgumentError(f"the mechanism of {name} takes {unnamed}, which are not plain arguments; {advice}")
    return {
        p.name: spelled.get(p.name, p.name)
        for p in parameters
        if p.default is p.empty or p.name in spelled or (p.name == OWN_NOISE and noisy)
    }


def _effects_of(reward: str, arguments_of: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Return the variables that depend on the reward."""
    graph = nx.DiGraph((cause, name) for name, arguments in arguments_of.items() for cause in arguments.values())
    graph.add_node(reward)
    effects: set[str] = nx.descendants(graph, reward)
    if any(graph.has_edge(name, reward) for name in (reward, *effects)):
        raise ArgumentError(f"the reward {reward} depends on itself, through {sorted(effects - {reward}) or 'nothing'}")
    return effects


def _reorder_arguments(
    function: Callable[..., Floats], arguments: Mapping[str, str], order: list[str]
) -> Callable[..., Floats]:
    """Return the function as one whose positional arguments are the values of the names in ``order``."""
    positional = [p.name for p in inspect.signature(function).parameters.values() if p.kind != p.KEYWORD_ONLY]
    indices = tuple(map(order.index, arguments.values()))
    if list(arguments) != positional[: len(arguments)]:
        return _ReorderedFunction(function, indices, tuple(arguments))
    return function if list(arguments.values()) == order else _ReorderedFunction(function, indices)


@dataclass(frozen=True)
class _ReorderedFunction:
    """A function called with the values at ``indices``, by position or, if there are ``names``, by these names.

    It is a class, not a closure, so that it can be pickled if ``function`` can.
    """

    function: Callable[..., Floats]
    indices: tuple[int, ...]
    names: tuple[str, ...] = ()

    def __call__(self, *values: Floats) -> Floats:
        arguments = [values[index] for index in self.indices]
        if self.names:
            return self.function(**dict(zip(self.names, arguments, strict=True)))
        return self.function(*arguments)


def _read_contexts(
    scm: GuardedModel,
    contexts: Sequence[str],
    scopes: Iterable[Mapping[str, Iterable[str]]] | None,
    noise_given: NoiseGiven | None,
    targets: Collection[frozenset[str]],
) -> Contexts | None:
    if not contexts:
        if scopes is not None or noise_given is not None:
            raise ArgumentError("scopes and noise_given are for problems with contexts; name the contexts")
        return None
    if scm.action_dim:
        raise ArgumentError("a problem with contexts takes no actions; make them variables that are manipulable")
    if hidden := [name for name in contexts if name not in scm.nodes]:
        raise ArgumentError(f"contexts are seen, so {hidden} cannot be latent")
    if len(set(contexts)) < len(contexts):
        raise ArgumentError(f"contexts must be different; given {list(contexts)}")
    if not callable(noise_given) and noise_given is not None:
        raise ArgumentError(f"noise_given must be a function of contexts and uniforms; given {short_repr(noise_given)}")
    if scopes is None:
        scopes = [dict.fromkeys(target, set(contexts) - scm.diagram.descendants(target)) for target in targets]
    return Contexts(tuple(contexts), read_scopes(scopes), noise_given or Abduction(scm, contexts))


def read_scopes(scopes: Iterable[Mapping[str, Iterable[str]]]) -> list[Scope]:
    """Return policy scopes from mappings: variable that is set -> the contexts on which its value may depend.

    Raises:
        ArgumentError: if ``scopes`` is not a list of such mappings.
    """
    if not isinstance(scopes, Iterable) or isinstance(scopes, str | Mapping):
        raise ArgumentError(
            f"scopes must be a list of mappings, as [{{'X': ['context']}}, {{}}]; given {short_repr(scopes)}"
        )
    return [
        frozenset(
            (variable, frozenset(_read_names(f"the contexts of {variable}", contexts)))
            for variable, contexts in _read_mapping("every scope", scope).items()
        )
        for scope in scopes
    ]
