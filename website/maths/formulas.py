"""Formulas of traced functions in LaTeX, by SymPy, with terms and factors in the order of the code."""

import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import chain, permutations
from typing import Any

import sympy
from sympy.core.parameters import distribute
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE

from cbo_gym.scm.expression import NODE, Expression

LETTERS = [rf"\{name}" for name in ("alpha", "beta", "gamma", "delta", "kappa", "lambda", "mu", "nu", "rho", "sigma")]
# Repeated parts get letters if the formula has MIN_FORMULA nodes in its expression tree and the part MIN_REPEATED.
MIN_FORMULA, MIN_REPEATED = 45, 7
MAX_TERMS = 8  # largest number of like terms of a sum that are all written out
DIGITS = 5
# Unlike SymPy's own functions, these are not simplified; DENOMINATOR(2) keeps x / 2 from becoming 0.5 x.
MAX, MIN, ABS, DENOMINATOR = (sympy.Function(name, real=True) for name in ("maximum", "minimum", "absolute", "same"))
RELATIONS = {
    "less": "<",
    "less_equal": r"\le",
    "greater": ">",
    "greater_equal": r"\ge",
    "equal": "=",
    "not_equal": r"\ne",
}


def number(value: float) -> sympy.Expr:
    """Return an exact number; multiples of pi, and e, by their letters."""
    turns = Fraction(value / math.pi).limit_denominator(12)
    if 0 < abs(turns.numerator) < 25 and math.isclose(float(turns) * math.pi, value, rel_tol=1e-14):
        return sympy.Rational(turns) * sympy.pi
    return sympy.E if value == math.e else sympy.Rational(repr(float(value)))


def symbol(name: str) -> sympy.Symbol:
    """Return the symbol of a quantity."""
    return sympy.Symbol(name, real=True)


def add(first: sympy.Expr, second: sympy.Expr) -> sympy.Expr:
    """Return the sum, with maxima and minima instead of arithmetic such as ``x + |x|``."""
    # x + |x|
    if second == ABS(first):
        return 2 * MAX(first, 0)
    # x + y - |x - y|
    if first.is_Add and len(first.args) == 2 and -second in {ABS(x - y) for x, y in permutations(first.args)}:
        return 2 * MIN(*first.args)
    # 1 - max(2 - 2 x, 0) / 2
    factor, maximum = second.as_coeff_Mul()
    if first.is_number and maximum.func == MAX and maximum.args[1] == 0:
        terms = [factor * term for term in sympy.Add.make_args(maximum.args[0])]
        if -first in terms:
            return MIN(sympy.Add(*terms, first), first)
    return first + second


STEPS = {
    "same": lambda x: x, "add": add, "subtract": lambda x, y: add(x, -y), "multiply": operator.mul,
    "divide": lambda x, y: x / (DENOMINATOR(y) if y.is_Rational else y),
    "power": operator.pow, "numpy_power": operator.pow,
    "negative": operator.neg, "square": lambda x: x**2, "absolute": ABS, "modulo": sympy.Mod,
    "floor_divide": lambda x, y: sympy.floor(x / y), "arctan": sympy.atan,
    "maximum": MAX, "minimum": MIN, "clip": lambda x, low, high: MIN(MAX(x, low), high),
    **{name: sympy.Function(name, real=True) for name in RELATIONS},
    **{name: getattr(sympy, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt")},
}  # fmt: skip


class Formula:
    """A traced function as an expression of SymPy.

    Attributes:
        value: the expression.
        orders: sum or product -> its terms or factors in the code's order, without coefficients or exponents.
    """

    def __init__(self, traced: Expression) -> None:
        values: list[sympy.Expr] = []
        self.orders: dict[sympy.Expr, list[sympy.Expr]] = {}
        with distribute(False):
            for name, *operands in traced.steps:
                arguments = [values[index] for index in operands if name in STEPS]
                if arguments:
                    values.append(STEPS[name](*arguments))
                else:
                    values.append(symbol(operands[0]) if name == NODE else number(operands[0]))
                if name in ("add", "subtract", "multiply", "divide"):
                    operation, key = (sympy.Add, _term) if values[-1].is_Add else (sympy.Mul, _factor)
                    orders = [self.orders.get(x, ()) if x.func == operation else [key(x)] for x in arguments]
                    self.orders.setdefault(values[-1], list(chain.from_iterable(orders)))
        self.value = values[-1]

    def lines(self, name: str) -> list[list[str]]:
        """Return the equation ``name = value`` and those of its letters, each as terms between which it may break."""
        with distribute(False):
            letters = self._name_repeated_parts()
            lines = {name_latex(name): self.value} | {letter: part for part, letter in reversed(letters.items())}
            return [_Printer(self.orders, letters).equation(*line) for line in lines.items()]

    def _name_repeated_parts(self) -> dict[sympy.Expr, str]:
        """Return a letter for each large part that occurs more than once in a large formula."""
        sizes = {part: sum(1 for _ in sympy.preorder_traversal(part)) for part in sympy.postorder_traversal(self.value)}
        uses = Counter(part for whole in sizes for part in whole.args)
        large = [
            part for part, size in sizes.items() if uses[part] > 1 and size >= MIN_REPEATED and _term(part) == part
        ]
        return dict(zip(large, LETTERS, strict=False)) if sizes[self.value] >= MIN_FORMULA else {}


def _term(part: sympy.Expr) -> sympy.Expr:
    return part.as_coeff_Mul()[1]


def _factor(part: sympy.Expr) -> sympy.Expr:
    return sympy.S.One if part.is_Rational else part.as_base_exp()[0]


class _Printer(LatexPrinter):
    """Printer that keeps terms and factors in the code's order, and writes most numbers as decimals."""

    def __init__(self, orders: Mapping[sympy.Expr, list[sympy.Expr]], letters: Mapping[sympy.Expr, str]) -> None:
        super().__init__({"inv_trig_style": "full"})
        self._orders, self._letters = orders, letters

    def equation(self, left: str, right: sympy.Expr) -> list[str]:
        self._letters = {part: letter for part, letter in self._letters.items() if letter != left}
        first, *others = self._terms(right)
        return [f"{left} = {first}", *(f"{{}} {term}" for term in others)]

    def _print(self, expr: sympy.Expr, **options: Any) -> str:
        return self._letters.get(expr) or super()._print(expr, **options)

    def parenthesize(self, item: sympy.Expr, *arguments: Any, **options: Any) -> str:
        return self._letters.get(item) or super().parenthesize(item, *arguments, **options)

    def _sort(self, parts: Iterable[sympy.Expr], whole: sympy.Expr, key: Callable[[Any], Any]) -> list[sympy.Expr]:
        order = self._orders.get(whole) or self._orders.get(-whole, [])
        return sorted(parts, key=lambda part: order.index(key(part)) if key(part) in order else len(order))

    def _terms(self, whole: sympy.Expr) -> list[str]:
        """Return the terms of a sum with their signs; of many similar ones, only the first two and the last."""
        terms = self._sort(sympy.Add.make_args(whole), whole, _term)
        shapes = [term.xreplace(dict.fromkeys(term.free_symbols, symbol("x"))) for term in terms]
        alike = [i for i, shape in enumerate(shapes) if shape == Counter(shapes).most_common(1)[0][0]]
        if len(alike) > MAX_TERMS:
            terms[alike[2]] = symbol(r"\dots")
            terms = [term for i, term in enumerate(terms) if i not in alike[3:-1]]
        latex_terms = []
        for term in terms:
            negative = term.as_coeff_Mul()[0] < 0
            latex = self.parenthesize(-term if negative else term, PRECEDENCE["Mul"], strict=True)
            latex_terms.append(f"- {latex}" if negative else f"+ {latex}" if latex_terms else latex)
        return latex_terms

    def _print_Add(self, expr: sympy.Add, order: None = None) -> str:  # noqa: N802
        return " ".join(self._terms(expr))

    def _print_Mul(self, expr: sympy.Expr) -> str:  # noqa: N802
        coefficient, factor = expr.as_coeff_Mul()
        if coefficient < 0:
            return " ".join(self._terms(expr))
        top, bottom = sympy.fraction(factor, exact=True)
        if _is_decimal(coefficient):
            parts = [coefficient, top]
        else:
            parts, bottom = [sympy.Integer(coefficient.p), top], coefficient.q * bottom
        latex = self._product(parts, expr)
        return latex if bottom == 1 else rf"\frac{{{latex}}}{{{self._product([bottom], expr)}}}"

    def _product(self, parts: Iterable[sympy.Expr], whole: sympy.Expr) -> str:
        factors = [factor for part in parts for factor in sympy.Mul.make_args(part) if factor != 1]
        if len(factors) < 2:
            return self._print(factors[0]) if factors else "1"
        factors = sorted(self._sort(factors, whole, _factor), key=lambda factor: not factor.is_number)
        return r"\,".join(self.parenthesize(factor, PRECEDENCE["Mul"], strict=True) for factor in factors)

    def _print_Rational(self, expr: sympy.Rational) -> str:  # noqa: N802
        return _decimal(float(expr)) if _is_decimal(expr) else rf"\frac{{{expr.p}}}{{{expr.q}}}"

    _print_Integer = _print_Rational  # noqa: N815

    def _print_Symbol(self, expr: sympy.Symbol, style: str = "plain") -> str:  # noqa: N802
        return name_latex(expr.name)

    def _print_ExpBase(self, expr: sympy.Expr, exp: str | None = None) -> str:  # noqa: N802
        (exponent,) = expr.args
        short = exponent.as_coeff_Mul()[1].is_Symbol
        return f"e^{{{self._print(exponent)}}}" if short else rf"\exp\left({self._print(exponent)}\right)"

    def _print_AppliedUndef(self, expr: sympy.Expr, exp: str | None = None) -> str:  # noqa: N802
        name, parts = expr.func.__name__, list(map(self._print, expr.args))
        if expr.func == DENOMINATOR:
            latex = parts[0]
        elif name in RELATIONS:  # 1 where it holds, else 0
            latex = rf"\left[{f' {RELATIONS[name]} '.join(parts)}\right]"
        elif expr.func == ABS:
            latex = rf"\left|{parts[0]}\right|"
        else:
            latex = rf"\{name[:3]}\left({', '.join(parts)}\right)"
        return f"{latex}^{{{exp}}}" if exp else latex


def _is_decimal(value: sympy.Rational) -> bool:
    """Return whether a number is written as a decimal, because it has few digits or is not a simple fraction."""
    return value.q > 100 or 10**DIGITS % value.q == 0


def _decimal(value: float) -> str:
    digits, _, exponent = f"{value:.{DIGITS}g}".partition("e")
    if not exponent:
        return digits
    return f"10^{{{int(exponent)}}}" if digits == "1" else rf"{digits} \cdot 10^{{{int(exponent)}}}"


def number_latex(value: float) -> str:
    """Return a number in LaTeX, in at most five digits."""
    return _Printer({}, {}).doprint(number(value))


def name_latex(name: str) -> str:
    """Return a quantity in LaTeX: ``X10``, ``I1_2`` and ``z(FULD)`` have indices, words stand upright."""
    if name.startswith("\\"):
        return name
    match = re.fullmatch(r"([^\W\d_]+)_?\(?(.*?)\)?", name)
    letters, index = match.groups() if match else (name, "")
    base = letters if len(letters) == 1 else rf"\mathrm{{{letters}}}"
    parts = index.split("_") if re.fullmatch(r"[\d_]+", index) else [name_latex(index)] if index else []
    return f"{base}_{{{','.join(parts)}}}" if parts else base
