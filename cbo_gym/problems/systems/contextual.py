"""Problems for contextual mode, in which contexts are observed before acting (Arsenyan et al., sec. 2, 6 and A).

:func:`contextual_network` turns action coordinates into contexts. The PSA problems, which minimise, are negated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cbo_gym._util.arguments import is_whole_number, require_not_negative
from cbo_gym._util.summation import add_up
from cbo_gym.actions import Interval
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.problems.base import Problem, gaussian_noise
from cbo_gym.problems.build import build_problem
from cbo_gym.problems.custom.custom import read_scopes
from cbo_gym.problems.modes.contextual import Columns, Contexts
from cbo_gym.problems.systems.building import hard_problem, read_equations
from cbo_gym.problems.systems.hard_graphs import AGES, DRUGS, PATIENT_EQUATIONS, psa_variables
from cbo_gym.scm import Normal, StructuralCausalModel, Uniform, Variable, own_noise
from cbo_gym.scm.scopes import Scope

COCA = "Arsenyan, Grosnit, Bou-Ammar & Dalalyan, Contextual causal Bayesian optimisation"
SYMMETRIC = Uniform(-1.0, 1.0)


def make_scope(contexts_of: Mapping[str, Iterable[str]]) -> Scope:
    """Return a scope from the contexts of each variable that it sets."""
    return frozenset((variable, frozenset(contexts)) for variable, contexts in contexts_of.items())


def truncated_normal(mean: np.ndarray, std: float, bound: float, uniforms: np.ndarray) -> np.ndarray:
    """Return Normal(mean, std) truncated to [-bound, bound], from U(0, 1) numbers.

    It is computed with the mean mirrored to be at least 0, so that the interval is in the lower tail, where the
    distribution function is accurate.
    """
    # Imported here, because it is slow to import.
    from scipy.special import ndtr, ndtri

    sign = np.where(np.asarray(mean) < 0.0, -1.0, 1.0)
    centre = sign * mean
    low, high = ndtr((-bound - centre) / std), ndtr((bound - centre) / std)
    return np.clip(sign * (centre + std * ndtri(low + (high - low) * uniforms)), -bound, bound)


def _problem(
    name: str,
    variables: Sequence[Variable],
    manipulable: Mapping[str, Interval],
    description: str,
    section: str,
    contexts: Contexts,
) -> Problem:
    return hard_problem(
        name,
        variables,
        manipulable,
        description,
        f"{COCA}, {section}",
        targets=(),
        noise_known=False,
        modes=[contexts],
    )


PATIENT = ("Age", "BMI")


def _psa_scopes() -> list[Scope]:
    """Return the scopes that set both drugs, either or none, each dose by age and body mass index."""
    chosen = (("Aspirin", "Statin"), ("Aspirin",), ("Statin",), ())
    return [make_scope(dict.fromkeys(drugs, PATIENT)) for drugs in chosen]


def _patient_noise(contexts: Columns, uniforms: Columns) -> Columns:
    return {"Age": contexts["Age"], "BMI": contexts["BMI"] - (27.0 - 0.01 * contexts["Age"])}


def _statin_only(contexts: Columns) -> Columns:
    age = contexts["Age"]
    return {"Aspirin": np.zeros_like(age), "Statin": np.ones_like(age)}


def psa_contextual_1() -> Problem:
    """PSAContextual1: the PSA graph, doses may depend on age and body mass index. The best doses do not."""
    return _problem(
        "PSAContextual1",
        psa_variables(),
        DRUGS,
        "Doses of aspirin and statin by age and body mass index; the reward is the negated PSA level.",
        "sec. A.1.1",
        Contexts(PATIENT, _psa_scopes(), _patient_noise, _statin_only, "Aspirin = 0, Statin = 1"),
    )


def _doses_by_risk(contexts: Columns) -> Columns:
    risk = (contexts["Age"] - 55.0) / 21.0 * abs(contexts["BMI"] - 27.0) / 4.0
    return {"Aspirin": risk, "Statin": risk}


def psa_contextual_2() -> Problem:
    """PSAContextual2: both doses should equal a product of age and body mass index.

    Y = -((Aspirin - AgeBMI)^2 + (Statin - AgeBMI)^2 + noise). This includes the cancer term, which the paper's Eq. 30
    leaves out and its Eq. 32 and 33 need.
    """
    equations = {
        **PATIENT_EQUATIONS,
        "AgeBMI": "(Age - 55.0) / 21.0 * abs(BMI - 27.0) / 4.0",
        "Cancer": "Statin * Statin + AgeBMI * AgeBMI + 0.5 * Aspirin * Aspirin",
        "Y": "-(Cancer + 0.5 * Aspirin * Aspirin + AgeBMI * AgeBMI - 2.0 * AgeBMI * (Aspirin + Statin) + u)",
    }
    policy = "Aspirin = Statin = (Age - 55) / 21 * |BMI - 27| / 4"
    return _problem(
        "PSAContextual2",
        read_equations(equations, {"Age": AGES, "BMI": Normal(0.0, 0.1), "Y": Normal(0.0, 0.01)}),
        DRUGS,
        "Both doses should follow age and body mass index; the reward is the negated squared distance.",
        "sec. A.1.2",
        Contexts(PATIENT, _psa_scopes(), _patient_noise, _doses_by_risk, policy, value=0.0),
    )


def _pair_scopes() -> list[Scope]:
    """Return the two scopes that may be optimal, then both variables at once, and none."""
    return [make_scope(dict.fromkeys(chosen, "C")) for chosen in (("X1",), ("X2",), ("X1", "X2"), ())]


def _context_is_latent(contexts: Columns, uniforms: Columns) -> Columns:
    return {"U1": contexts["C"]}


def _mirrored_context(contexts: Columns) -> Columns:
    return {"X1": -contexts["C"]}


def coca_fig1() -> Problem:
    """CoCaFig1: only X1 set by the context reaches the optimum.

    Setting X2 removes its confounding with the reward, and the mean reward is 0; policies that ignore the context earn
    less than 1/4.
    """
    equations = {
        "U1": "u",
        "U2": "u",
        "C": "U1",
        "X1": "U1",
        "X2": "U2 * exp(-((X1 + C) * (X1 + C)))",
        "Y": "U2 * X2 + C",
    }
    return _problem(
        "CoCaFig1",
        read_equations(equations, SYMMETRIC, latent="U1 U2"),
        {"X1": (-1.0, 1.0), "X2": (-1.0, 1.0)},
        "Two latent confounders; setting everything by the context earns nothing.",
        "sec. 2, Fig. 1",
        Contexts(("C",), _pair_scopes(), _context_is_latent, _mirrored_context, "X1 = -C", value=1.0 / 3.0),
    )


def _noisy_context(contexts: Columns, uniforms: Columns) -> Columns:
    latent = truncated_normal(contexts["C"], 0.1, 1.0, uniforms["U1"])
    return {"U1": latent, "C": contexts["C"] - latent}


def _same_as_context(contexts: Columns) -> Columns:
    return {"X2": contexts["C"]}


def coca_aligned(noise_y: float = 0.1) -> Problem:
    """CoCaAligned: the graph of CoCaFig1, but X2 = C is best, so setting both variables does no harm.

    Args:
        noise_y: standard deviation of the reward's noise, which enters with the factor 0.1 (0.01 to 6.25 in the
            paper's study of robustness).
    """
    equations = {
        "U1": "u",
        "U2": "u",
        "C": "U1 + u",
        "X1": "U1 + u",
        "X2": "abs(C - X1) + 0.2 * U2",
        "Y": "cos(C - X2) + 0.1 * U2 + 0.1 * u",
    }
    tenth = Normal(0.0, 0.1)
    noise = {"U1": SYMMETRIC, "U2": SYMMETRIC, "C": tenth, "X1": tenth, "Y": gaussian_noise(noise_y, "noise_y")}
    return _problem(
        "CoCaAligned",
        read_equations(equations, noise, latent="U1 U2"),
        {"X1": (-2.0, 2.0), "X2": (-2.0, 2.0)},
        "Two latent confounders; X2 should equal the context.",
        "sec. A.2",
        Contexts(("C",), _pair_scopes(), _noisy_context, _same_as_context, "X2 = C", value=1.0),
    )


CHAIN = tuple(f"C{i}" for i in range(7))
# Contexts and settable variables with little effect, which make the problem large.
BYSTANDING_CONTEXTS = tuple(f"Ct{i}" for i in range(1, 51))
BYSTANDERS = tuple(f"Xt{i}" for i in range(1, 28))


def _mean(values: Sequence[Any]) -> Any:
    return add_up(values) / len(values)


def _large_noise(contexts: Columns, uniforms: Columns) -> Columns:
    """Return the noise of all contexts, of U1 and of the bystanders, given the contexts.

    C5 is C4 + 0.01 m + u, where m is the mean of the bystanders. Observing it multiplies the density of the bystanders
    by exp(s m - m^2 / 200) with s = C5 - C4. The quadratic term changes the density by less than 1e-4 and is left out;
    the linear term is a product of exponential tilts, one for each bystander.
    """
    noise = dict(contexts)
    latent = truncated_normal(contexts["C0"] - contexts["C1"], 0.1, 1.0, uniforms["U1"])
    noise["U1"] = latent
    noise["C1"] = contexts["C1"] - contexts["C0"] + latent
    for before, after in (("C1", "C2"), ("C2", "C3"), ("C3", "C4"), ("C5", "C6")):
        noise[after] = contexts[after] - contexts[before]
    step = contexts["C5"] - contexts["C4"]
    span = 2.0 + 0.1 * _mean([contexts[name] for name in BYSTANDING_CONTEXTS])
    rate = step * span / len(BYSTANDERS)
    for name in BYSTANDERS:
        noise[name] = _tilted_uniform(rate, uniforms[name])
    noise["C5"] = step - 0.01 * (span * _mean([noise[name] for name in BYSTANDERS]) - 1.0)
    return noise


def _tilted_uniform(rate: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Return draws on (0, 1) with density proportional to exp(rate x)."""
    rate = np.where(np.abs(rate) < 1e-9, 1e-9, rate)
    return np.log1p(uniforms * np.expm1(rate)) / rate


def _same_as_c1(contexts: Columns) -> Columns:
    return {"X2": contexts["C1"]}


def coca_large(scopes: Sequence[Mapping[str, Sequence[str]]] | None = None) -> Problem:
    """CoCaLarge: 57 contexts and 29 variables that may be set, two of which matter.

    C4 has the parent C3; the paper prints C4 as its own parent.

    Args:
        scopes: scopes that may be played, at most 1,024, each a mapping from variables to their contexts. By default
            the two that the paper names, all variables by all contexts (an Xt not by its effects C5 and C6), and none.
    """
    contexts = (*CHAIN, *BYSTANDING_CONTEXTS)
    upstream = [name for name in contexts if name not in ("C5", "C6")]
    everything = {"X1": contexts, "X2": contexts, **dict.fromkeys(BYSTANDERS, upstream)}
    chosen_scopes = ({"X1": ("C1", "C6")}, {"X2": ("C1",)}, everything, {}) if scopes is None else scopes
    mean_of_contexts = f"({' + '.join(BYSTANDING_CONTEXTS)}) / {len(BYSTANDING_CONTEXTS)}"
    mean_of_bystanders = f"({' + '.join(BYSTANDERS)}) / {len(BYSTANDERS)}"
    equations = {
        "U1": "u",
        "U2": "u",
        "C0": "u",
        "X1": "U1 + u",
        "C1": "C0 - U1 + u",
        **{f"C{i}": f"C{i - 1} + u" for i in (2, 3, 4, 6)},
        **dict.fromkeys(BYSTANDING_CONTEXTS, "u"),
        **dict.fromkeys(BYSTANDERS, f"-1.0 + (2.0 + 0.1 * ({mean_of_contexts})) * u"),
        "C5": f"C4 + 0.01 * ({mean_of_bystanders}) + u",
        "X2": "0.5 * (C1 + C6) + X1 + 0.3 * abs(U2) + u",
        "Y": "cos(C1 - X2) + 0.1 * U2 + u",
    }
    noise = {
        **dict.fromkeys(equations, Normal(0.0, 0.1)),
        **dict.fromkeys(("C0", *BYSTANDING_CONTEXTS), Normal(0.0, 0.2)),
        **dict.fromkeys(("U1", "U2"), SYMMETRIC),
        **dict.fromkeys(BYSTANDERS, Uniform()),
        "Y": Normal(0.0, 0.01),
    }
    return _problem(
        "CoCaLarge",
        read_equations(equations, noise, latent="U1 U2"),
        dict.fromkeys(("X1", "X2", *BYSTANDERS), (-2.0, 2.0)),
        "57 contexts and 29 variables to set; X2 should equal C1.",
        "sec. A.3",
        Contexts(contexts, read_scopes(chosen_scopes), _large_noise, _same_as_c1, "X2 = C1", value=1.0),
    )


def _coordinates(contexts: Any, dim: int) -> list[int]:
    coordinates = contexts if isinstance(contexts, list | tuple | range) and len(contexts) <= dim else ()
    if not all(is_whole_number(i) and 0 <= i < dim for i in coordinates) or not 0 < len(set(coordinates)) < dim:
        raise ArgumentError(
            f"contexts must be some, not all, of the coordinates 0 to {dim - 1}; given {short_repr(contexts)}"
        )
    return sorted(set(coordinates))


def contextual_network(network: str, contexts: Sequence[int] = (0,), noise_std: float = 0.0) -> Problem:
    """Turn a soft problem into a contextual one: some action coordinates are contexts, the others may be set.

    Coordinate i becomes a variable (named Ai if it has no name), uniform over its domain unless it is set. There are
    two scopes: one sets all variables that are not contexts, given all contexts; the other sets none.

    Args:
        network: import path ``"package.module:function"`` of the soft problem's builder.
        contexts: coordinates that are contexts; at least one, and at least one must be left.
        noise_std: standard deviation of the noise on each node, for networks that have a noisy version.
    """
    require_not_negative("noise_std", noise_std)
    soft = build_problem(network, **({"noise_std": noise_std} if noise_std else {}))
    if not isinstance(soft.scm, StructuralCausalModel):
        raise ArgumentError(f"{network} must build a StructuralCausalModel; it builds a {type(soft.scm).__name__}")
    dim = soft.scm.action_dim
    chosen = _coordinates(contexts, dim)
    names = list(soft.action_names) or [f"A{i}" for i in range(dim)]
    domains: dict[str, Interval] = dict(zip(names, soft.action_domains, strict=True))
    context_names = tuple(names[i] for i in chosen)
    manipulable = {name: domain for name, domain in domains.items() if name not in context_names}
    variables = [Variable(name, own_noise, noise=Uniform(*domain)) for name, domain in domains.items()]
    for v in soft.scm.variables:
        causes = (*v.parents, *(names[i] for i in v.actions))
        variables.append(Variable(v.name, v.mechanism, causes, noise=v.noise, observed=v.observed))
    return Problem(
        name=f"{soft.name}Contextual",
        scm=StructuralCausalModel(variables, reward=soft.scm.reward),
        description=f"{soft.description} {', '.join(context_names)} can be seen, not set.",
        citation=soft.citation,
        manipulable=manipulable,
        noise_known=False,
        modes=[Contexts(context_names, [make_scope(dict.fromkeys(manipulable, context_names)), frozenset()], _noise)],
    )


def _noise(contexts: Columns, uniforms: Columns) -> Columns:
    return contexts
