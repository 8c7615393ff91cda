"""The equations of a system, one for each node, with their noise, traced from the code."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from cbo_gym.scm import (
    Arcsine,
    Discrete,
    Distribution,
    Empirical,
    GaussianMixture,
    Normal,
    SeparableSEM,
    StructuralCausalModel,
    System,
    TruncatedNormal,
    Uniform,
    Variable,
    Zero,
)
from cbo_gym.scm.expression import NODE, Expression, trace
from website.maths.formulas import Formula, name_latex, number_latex
from website.maths.mathml import mathml

SIM = "\\;\u223c\\;"  # latex2mathml writes a plain tilde for \sim
# Equations of more steps are too long to read, so only the causes are listed.
MAX_STEPS = 500
# Least number of consecutive nodes that share a row if their equations differ only in the node's name.
MIN_GROUP = 4


@dataclass(frozen=True)
class Equation:
    """The equation of a variable.

    Args:
        name: name of the variable.
        traced: the function of its causes, actions and noise.
        noise: the distributions of the exogenous quantities in it, by name.
        observed: False for a latent variable.
    """

    name: str
    traced: Expression
    noise: dict[str, Distribution]
    observed: bool = True

    @cached_property
    def formula(self) -> Formula:
        return Formula(self.traced)


def noise_name(variable: str) -> str:
    """Return the symbol of a variable's exogenous part in formulas."""
    return f"U({variable})"


def equations_of(scm: System, actions: Sequence[str]) -> list[Equation]:
    """Return the equations in the order of the variables, latent ones included.

    Args:
        scm: the system.
        actions: names of the soft parameters.
    """
    if isinstance(scm, SeparableSEM):
        return _separable(scm)
    assert isinstance(scm, StructuralCausalModel)
    return [_structural(variable, actions) for variable in scm.variables]


def _structural(v: Variable, actions: Sequence[str]) -> Equation:
    noise = {} if isinstance(v.noise, Zero) else {noise_name(v.name): v.noise}
    causes = [*v.parents, *(actions[i] for i in v.actions), *noise]
    last_argument = () if noise else (0.0,)
    traced = trace(lambda values: v.mechanism(*[values[cause] for cause in causes], *last_argument), causes)
    return Equation(v.name, traced, noise, v.observed)


def _separable(scm: SeparableSEM) -> list[Equation]:
    """Return the equations of a separable SEM, with the super arm ``x`` and the signals ``b``."""
    sem, names = scm.arguments, scm.nodes[:-1]
    super_arm = [f"x{i + 1}" for i in range(len(names))]

    def equation(i: int, name: str) -> Equation:
        signal, model_noise = f"b{i + 1}", sem["model_noise"]
        noise = {signal: sem["signals"][i]} | ({} if isinstance(model_noise, Zero) else {noise_name(name): model_noise})

        def mechanism(values: Mapping[str, Any]) -> Any:
            masked = values[super_arm[i]] * values[signal] if sem["mask"] == "exogenous" else values[signal]
            own_part = sem["activations"][i](masked) + sum(values[other] for other in noise if other != signal)
            effects = (sem["components"][i, j](values[names[j]]) for effect, j in sem["components"] if effect == i)
            return sum(effects) + own_part

        return Equation(name, trace(mechanism, [*names, super_arm[i], *noise]), noise)

    def payoff(values: Mapping[str, Any]) -> Any:
        arms = super_arm if sem["mask"] == "endogenous" else ()
        masked = {name: values[arm] * values[name] for name, arm in zip(names, arms, strict=False)}
        return scm.payoff({name: values[name] for name in names} | masked)

    return [*map(equation, range(len(names)), names), Equation(scm.reward, trace(payoff, [*names, *super_arm]), {})]


def equations_html(equations: Sequence[Equation]) -> str:
    """Return a row for each equation, latent variables marked, with its noise."""
    rows = ""
    for _, alike in groupby(equations, key=_pattern):
        group = list(alike)
        rows += "".join(map(_row, [group] if len(group) >= MIN_GROUP else [[equation] for equation in group]))
    label = 'tabindex="0" role="region" aria-label="Equations" data-search-exclude'
    return f'<div class="equations" {label}>{rows}</div>'


def _row(group: Sequence[Equation]) -> str:
    """Return the row of the first equation of a group, and of the others in a note."""
    first = group[0]
    notes = [] if first.observed else ["latent"]
    if len(first.traced.steps) > MAX_STEPS:
        lines = [[_signature(first)]]
        notes.append(f"an expression of {len(first.traced.steps):,} steps")
    else:
        lines = first.formula.lines(first.name)
    formulas = "".join(f'<div class="math-line">{" ".join(map(_math, line))}</div>' for line in lines)
    for name, distribution in first.noise.items():
        notes.append(_math(rf"{name_latex(name)} {SIM} {distribution_latex(distribution)}"))
    if len(group) > 1:
        notes.append(f"and so on to {_math(name_latex(group[-1].name))}, {len(group)} in all")
    note = f'<div class="math-note">{", ".join(notes)}</div>' if notes else ""
    return f'<div class="equation"><div>{formulas}</div>{note}</div>'


def _signature(equation: Equation) -> str:
    """Return the formula that names a variable's causes alone."""
    causes = dict.fromkeys(step[1] for step in equation.traced.steps if step[0] == NODE)
    return rf"{name_latex(equation.name)} = f\left({', '.join(map(name_latex, causes))}\right)"


def _math(latex: str) -> str:
    """Return an inline formula with fractions in full size."""
    return f'<math displaystyle="true">{mathml(latex, block=False).partition(">")[2]}'


def _pattern(equation: Equation) -> tuple[Any, ...]:
    own_noise = (NODE, noise_name(equation.name))
    return (
        [step if step != own_noise else NODE for step in equation.traced.steps],
        list(equation.noise.values()),
        equation.observed,
    )


def distribution_latex(distribution: Distribution) -> str:
    """Return the formula of a distribution; the variance of a normal one is written as a square."""
    n = number_latex
    match distribution:
        case Normal():
            return _normal(distribution.mean, distribution.std)
        case Uniform():
            return rf"\mathcal{{U}}{_interval(distribution.low, distribution.high)}"
        case GaussianMixture():
            components = zip(distribution.weights, distribution.means, distribution.stds, strict=True)
            return " + ".join(("" if w == 1.0 else rf"{n(w)}\,") + _normal(mean, std) for w, mean, std in components)
        case TruncatedNormal():
            interval = _interval(distribution.low, distribution.high)
            return rf"{_normal(distribution.location, distribution.scale)}\text{{ on }}{interval}"
        case Arcsine():
            width = 2.0**0.5 * distribution.std
            return rf"\mathrm{{Arcsine}}{_interval(distribution.mean - width, distribution.mean + width)}"
        case Empirical():
            ends = _interval(distribution.quantiles[0], distribution.quantiles[-1])
            return rf"\text{{empirical, mean }}{n(distribution.mean)}\text{{ on }}{ends}"
        case Discrete():
            pairs = zip(distribution.values, distribution.weights, strict=True)
            return r"\text{, }".join(rf"{n(value)}\text{{ with probability }}{n(weight)}" for value, weight in pairs)
    return rf"\text{{{distribution!r}}}"


def _normal(mean: float, std: float) -> str:
    return rf"\mathcal{{N}}\left({number_latex(mean)}, {number_latex(std)}^{{2}}\right)"


def _interval(low: float, high: float) -> str:
    return rf"\left[{number_latex(low)}, {number_latex(high)}\right]"
