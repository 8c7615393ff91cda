"""The equations of a system, one per node, with the noise in them; traced, so that they are what the code computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from formulas import Expression, as_expression, lines_of, math_element, name_mathml, number_mathml, symbol

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
    Zero,
)

ALIKE = 4  # nodes in a row whose equations differ in their own name alone are told together


@dataclass(frozen=True)
class Equation:
    """The parts of a variable's equation.

    Args:
        name: of the variable.
        expression: in its causes, actions and noise.
        noise: the distributions of the exogenous quantities in it, by name.
        observed: False for a latent variable.
    """

    name: str
    expression: Expression
    noise: dict[str, Distribution]
    observed: bool = True


def noise_name(variable: str) -> str:
    """The symbol of a variable's exogenous part in formulas."""
    return f"U({variable})"


def equations_of(scm: System, actions: Sequence[str]) -> list[Equation]:
    """The equations in the order of the variables, latent ones included.

    Args:
        scm: the system.
        actions: names of the soft parameters.
    """
    if isinstance(scm, SeparableSEM):
        return list(_separable(scm))
    assert isinstance(scm, StructuralCausalModel)
    return list(_structural(scm, actions))


def _structural(scm: StructuralCausalModel, actions: Sequence[str]) -> Iterator[Equation]:
    for v in scm.variables:
        noise = {} if isinstance(v.noise, Zero) else {noise_name(v.name): v.noise}
        u = symbol(noise_name(v.name)) if noise else 0.0
        causes = [*map(symbol, v.parents), *(symbol(actions[i]) for i in v.actions)]
        yield Equation(v.name, as_expression(v.mechanism(*causes, u)), noise, v.observed)


def _separable(scm: SeparableSEM) -> Iterator[Equation]:
    """Of a separable SEM: ``x`` is the super arm, ``b`` its signals."""
    given, names = scm.arguments, scm.nodes[:-1]
    for i, name in enumerate(names):
        arm, signal = symbol(f"x{i + 1}"), symbol(f"b{i + 1}")
        driving = given["activations"][i](arm * signal if given["mask"] == "exogenous" else signal)
        noise = {f"b{i + 1}": given["signals"][i]}
        if not isinstance(given["model_noise"], Zero):
            noise[noise_name(name)] = given["model_noise"]
            driving = driving + symbol(noise_name(name))
        causes = [(symbol(names[j]), part) for (effect, j), part in given["components"].items() if effect == i]
        yield Equation(name, as_expression(sum([part(cause) for cause, part in causes]) + driving), noise)
    paid = {name: symbol(name) for name in names}
    if given["mask"] == "endogenous":
        paid = {name: symbol(f"x{i + 1}") * value for i, (name, value) in enumerate(paid.items())}
    yield Equation(scm.reward, as_expression(scm.payoff(paid)), {})


# HTML --------------------------------------------------------------------------------------------------------


def equations_html(equations: Sequence[Equation]) -> str:
    """A row an equation, latent variables marked, with the noise beside it."""
    rows = "".join(map(_row, _alike(equations)))
    label = 'tabindex="0" role="region" aria-label="Equations" data-search-exclude'
    return f'<div class="equations" {label}>{rows}</div>'


def _row(group: Sequence[Equation]) -> str:
    first = group[0]
    lines = (" ".join(line) for line in lines_of(first.name, first.expression))
    formulas = "".join(f'<div class="math-line">{line}</div>' for line in lines)
    notes = [] if first.observed else ["latent"]
    for name, distribution in first.noise.items():
        notes.append(math_element(f"{name_mathml(name)}<mo>&#8764;</mo>{distribution_mathml(distribution)}"))
    if len(group) > 1:
        notes.append(f"and so on to {math_element(name_mathml(group[-1].name))}, {len(group)} in all")
    note = f'<div class="math-note">{", ".join(notes)}</div>' if notes else ""
    return f'<div class="equation"><div>{formulas}</div>{note}</div>'


def _alike(equations: Sequence[Equation]) -> list[list[Equation]]:
    groups: list[list[Equation]] = []
    for one in equations:
        if groups and _pattern(one) == _pattern(groups[-1][0]):
            groups[-1].append(one)
        else:
            groups.append([one])
    return [part for group in groups for part in ([group] if len(group) >= ALIKE else [[one] for one in group])]


def _pattern(one: Equation) -> tuple[str, tuple[Distribution, ...], bool]:
    text = repr(one.expression).replace(f"'{noise_name(one.name)}'", "noise")
    return text, tuple(one.noise.values()), one.observed


def distribution_mathml(given: Distribution) -> str:
    """A distribution; the second number of a normal one is its variance, written as a square."""
    if isinstance(given, Normal):
        return _normal(given.mean, given.std)
    if isinstance(given, Uniform):
        return f"<mi>&#119984;</mi>{_interval(given.low, given.high)}"
    if isinstance(given, GaussianMixture):
        parts = zip(given.weights, given.means, given.stds, strict=True)
        terms = [
            _normal(mean, std) if w == 1.0 else f"{number_mathml(w)}<mo>&#8290;</mo>{_normal(mean, std)}"
            for w, mean, std in parts
        ]
        return "<mo>+</mo>".join(terms)
    if isinstance(given, TruncatedNormal):
        return f"{_normal(given.location, given.scale)}<mtext>&nbsp;on&nbsp;</mtext>{_interval(given.low, given.high)}"
    if isinstance(given, Arcsine):
        width = 2.0**0.5 * given.std
        return f"<mi>Arcsine</mi>{_interval(given.mean - width, given.mean + width)}"
    if isinstance(given, Empirical):
        mean = f"<mtext>empirical, mean&nbsp;</mtext>{number_mathml(given.mean)}"
        return f"{mean}<mtext>&nbsp;on&nbsp;</mtext>{_interval(given.quantiles[0], given.quantiles[-1])}"
    if isinstance(given, Discrete):
        pairs = [
            f"{number_mathml(value)}<mtext>&nbsp;with probability&nbsp;</mtext>{number_mathml(weight)}"
            for value, weight in zip(given.values, given.weights, strict=True)
        ]
        return "<mtext>,&nbsp;</mtext>".join(pairs)
    return f"<mtext>{escape(repr(given))}</mtext>"


def _normal(mean: float, std: float) -> str:
    return (
        f"<mi>&#119977;</mi><mrow><mo>(</mo>{number_mathml(mean)}<mo>,</mo>"
        f"<msup>{number_mathml(std)}<mn>2</mn></msup><mo>)</mo></mrow>"
    )


def _interval(low: float, high: float) -> str:
    return f"<mrow><mo>[</mo>{number_mathml(low)}<mo>,</mo>{number_mathml(high)}<mo>]</mo></mrow>"
