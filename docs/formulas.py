"""Formulas read off the code: mechanisms called with expressions in place of numbers, and MathML of what comes out.

A mechanism is arithmetic and NumPy functions, so whatever has operators and ``__array_ufunc__`` can go through it. The
expressions keep the order in which the code writes terms and factors, as computer algebra systems do not.
"""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "sqrt": np.sqrt,
    "arctan": np.arctan, "abs": np.abs, "max": np.maximum, "min": np.minimum, "mod": np.mod,
    "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
}  # fmt: skip
UFUNCS = {name: name for name in FUNCTIONS} | {
    "absolute": "abs", "fabs": "abs", "maximum": "max", "minimum": "min", "remainder": "mod", "greater": "gt",
    "greater_equal": "ge", "less": "lt", "less_equal": "le",
}  # fmt: skip
COMPARISONS = {"gt": "&gt;", "ge": "&#8805;", "lt": "&lt;", "le": "&#8804;"}
ARITHMETIC = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "true_divide": operator.truediv, "power": operator.pow, "float_power": operator.pow, "negative": operator.neg,
    "square": lambda x: x * x,
}  # fmt: skip
LETTERS = "αβγδκλμνρστφχψω"  # for parts that come twice
LARGE = 45  # parts of a formula from which on such parts get a letter
WORTH = 7  # parts of them
MOST_TERMS = 8  # of a sum of like terms that is written out
DIGITS = 5


class Expression:
    """An expression in named quantities; equal ones are the same object.

    Attributes:
        kind: ``"number"``, ``"symbol"``, ``"sum"``, ``"product"``, ``"quotient"``, ``"power"`` or a function's name.
        parts: the number, the name, or expressions.
    """

    _made: dict[tuple[Any, ...], Expression] = {}
    kind: str
    parts: tuple[Any, ...]

    def __new__(cls, kind: str, *parts: Any) -> Expression:
        key = (kind, *parts)
        if key not in cls._made:
            made = super().__new__(cls)
            made.kind, made.parts = kind, parts
            cls._made[key] = made
        return cls._made[key]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        name = ufunc.__name__
        if method == "outer" and name in ARITHMETIC:
            first, second = inputs
            pairs = [ARITHMETIC[name](first, one) for one in np.ravel(second)]
            return np.array(pairs, dtype=object)
        if method == "__call__" and not keywords:
            if any(isinstance(one, np.ndarray) and one.ndim for one in inputs):
                return np.frompyfunc(lambda *row: ufunc(*row), len(inputs), 1)(*inputs)
            if name in ARITHMETIC:
                return ARITHMETIC[name](*map(as_expression, inputs))
            if name in UFUNCS:
                return call(UFUNCS[name], *map(as_expression, inputs))
        return NotImplemented

    def __add__(self, other: Any) -> Expression:
        return add(self, as_expression(other))

    def __radd__(self, other: Any) -> Expression:
        return add(as_expression(other), self)

    def __sub__(self, other: Any) -> Expression:
        return add(self, -as_expression(other))

    def __rsub__(self, other: Any) -> Expression:
        return add(as_expression(other), -self)

    def __mul__(self, other: Any) -> Expression:
        return multiply(self, as_expression(other))

    def __rmul__(self, other: Any) -> Expression:
        return multiply(as_expression(other), self)

    def __truediv__(self, other: Any) -> Expression:
        return divide(self, as_expression(other))

    def __rtruediv__(self, other: Any) -> Expression:
        return divide(as_expression(other), self)

    def __pow__(self, other: Any) -> Expression:
        return power(self, as_expression(other))

    def __rpow__(self, other: Any) -> Expression:
        return power(as_expression(other), self)

    def __mod__(self, other: Any) -> Expression:
        return call("mod", self, as_expression(other))

    def __gt__(self, other: Any) -> Expression:
        return call("gt", self, as_expression(other))

    def __ge__(self, other: Any) -> Expression:
        return call("ge", self, as_expression(other))

    def __lt__(self, other: Any) -> Expression:
        return call("lt", self, as_expression(other))

    def __le__(self, other: Any) -> Expression:
        return call("le", self, as_expression(other))

    def __neg__(self) -> Expression:
        return multiply(number(-1.0), self)

    def __abs__(self) -> Expression:
        return call("abs", self)

    def exp(self) -> Expression:  # what NumPy calls on arrays of objects
        return call("exp", self)

    def clip(self, low: Any, high: Any, out: None = None) -> Expression:  # what np.clip calls
        return call("min", call("max", self, as_expression(low)), as_expression(high))

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(repr, self.parts))})"


def symbol(name: str) -> Expression:
    """A quantity by name."""
    return Expression("symbol", name)


def number(value: float) -> Expression:
    """A constant."""
    return Expression("number", float(value) + 0.0)


def as_expression(value: Any) -> Expression:
    """An expression as it is, a number as a constant."""
    return value if isinstance(value, Expression) else number(float(value))


def add(first: Expression, second: Expression) -> Expression:
    """The sum, its terms in order; the plain-arithmetic ways to write maxima and minima are undone."""
    if second is call("abs", first):  # x + |x|
        return 2.0 * call("max", first, number(0.0))
    if first.kind == "sum" and len(first.parts) == 2:
        one, other = first.parts
        if second is -call("abs", one - other):  # x + y - |x - y|
            return 2.0 * call("min", one, other)
    terms = [*_terms(first), *_terms(second)]
    constants = [term.parts[0] for term in terms if term.kind == "number"]
    if len(constants) > 1 or constants == [0.0]:
        place = next(i for i, term in enumerate(terms) if term.kind == "number")
        terms = [term for term in terms if term.kind != "number"]
        if total := math.fsum(constants):
            terms.insert(min(place, len(terms)), number(total))
    if not terms:
        return number(0.0)
    return _clipped(Expression("sum", *terms)) if len(terms) > 1 else terms[0]


def _clipped(found: Expression) -> Expression:
    """``1 - max(2 - 2 m, 0) / 2`` is the smaller of m and 1."""
    if len(found.parts) == 2 and found.parts[0] is number(1.0) and found.parts[1].kind == "product":
        factor, *rest = found.parts[1].parts
        if factor is number(-0.5) and len(rest) == 1 and rest[0].kind == "max":
            inner = rest[0].parts[0]
            if inner.kind == "sum" and inner.parts[0] is number(2.0) and len(inner.parts) == 2:
                return call("min", multiply(number(-0.5), inner.parts[1]), number(1.0))
    return found


def _terms(expression: Expression) -> tuple[Expression, ...]:
    return expression.parts if expression.kind == "sum" else (expression,)


def multiply(first: Expression, second: Expression) -> Expression:
    """The product: one number in front, equal factors as powers."""
    factors = [*_factors(first), *_factors(second)]
    coefficient = math.prod(factor.parts[0] for factor in factors if factor.kind == "number")
    if coefficient == 0.0:
        return number(0.0)
    powers: dict[Expression, Expression] = {}
    for factor in factors:
        if factor.kind != "number":
            base, exponent = factor.parts if factor.kind == "power" else (factor, number(1.0))
            powers[base] = powers[base] + exponent if base in powers else exponent
    rest = [power(base, exponent) for base, exponent in powers.items()]
    if coefficient != 1.0 or not rest:
        rest.insert(0, number(coefficient))
    return Expression("product", *rest) if len(rest) > 1 else rest[0]


def _factors(expression: Expression) -> tuple[Expression, ...]:
    return expression.parts if expression.kind == "product" else (expression,)


def divide(first: Expression, second: Expression) -> Expression:
    """The quotient; a sign comes in front."""
    if second.kind == "number" and first.kind == "number":
        return number(first.parts[0] / second.parts[0])
    if second is number(1.0):
        return first
    if first.kind == "product" and first.parts[0] is number(-1.0):
        return -divide(-first, second)
    return Expression("quotient", first, second)


def power(base: Expression, exponent: Expression) -> Expression:
    """The power; powers of e are exponentials."""
    if exponent.kind == "number" and base.kind == "number":
        return number(base.parts[0] ** exponent.parts[0])
    if exponent is number(1.0):
        return base
    if base is number(math.e):
        return call("exp", exponent)
    if exponent is number(0.5):
        return call("sqrt", base)
    if base.kind == "power" and exponent.kind == "number":
        return power(base.parts[0], base.parts[1] * exponent)
    return Expression("power", base, exponent)


def call(name: str, *parts: Expression) -> Expression:
    """A function of expressions."""
    if all(part.kind == "number" for part in parts):
        return number(FUNCTIONS[name](*(part.parts[0] for part in parts)))
    return Expression(name, *parts)


def evaluate(expression: Expression, values: Mapping[str, Any]) -> Any:
    """The value where the symbols have ``values``, numbers or arrays that broadcast together."""
    found: dict[Expression, Any] = {}

    def value(one: Expression) -> Any:
        if one not in found:
            found[one] = _value(one, values) if one.kind in ("number", "symbol") else _apply(one, value)
        return found[one]

    return value(expression)


def _value(leaf: Expression, values: Mapping[str, Any]) -> Any:
    return leaf.parts[0] if leaf.kind == "number" else values[leaf.parts[0]]


def _apply(expression: Expression, value: Callable[[Expression], Any]) -> Any:
    parts = [value(part) for part in expression.parts]
    if expression.kind == "sum":
        return sum(parts)
    if expression.kind == "product":
        return math.prod(parts)
    if expression.kind == "quotient":
        return parts[0] / parts[1]
    return parts[0] ** parts[1] if expression.kind == "power" else FUNCTIONS[expression.kind](*parts)


def symbols_in(expression: Expression) -> frozenset[str]:
    """The names of the quantities in it."""
    return frozenset(one.parts[0] for one in _every(expression) if one.kind == "symbol")


def _every(expression: Expression) -> Iterator[Expression]:
    """The expression and its parts, each once, parts first."""
    seen: set[Expression] = set()

    def visit(one: Expression) -> Iterator[Expression]:
        if one not in seen:
            seen.add(one)
            if one.kind not in ("number", "symbol"):
                for part in one.parts:
                    yield from visit(part)
            yield one

    yield from visit(expression)


def repeated_parts(expression: Expression) -> dict[Expression, str]:
    """Large parts that a large formula holds more than once, with a letter for each."""
    uses: Counter[Expression] = Counter()
    sizes: dict[Expression, int] = {}
    for one in _every(expression):
        parts = () if one.kind in ("number", "symbol") else one.parts
        uses.update(parts)
        sizes[one] = 1 + sum(sizes[part] for part in parts)
    if sizes[expression] < LARGE:
        return {}
    chosen = [one for one, size in sizes.items() if uses[one] > 1 and size >= WORTH and _leading_number(one) != -1.0]
    return dict(zip(chosen, LETTERS, strict=False))


# MathML ------------------------------------------------------------------------------------------------------

SUM, PRODUCT, POWER, ATOM = range(4)  # how tightly the parts of an expression hang together


def lines_of(name: str, expression: Expression) -> list[list[str]]:
    """The equation ``name = expression`` and those of repeated parts; each a list of ``<math>`` to break between."""
    letters = repeated_parts(expression)
    lines = [_equation(symbol(name), expression, letters)]
    for part, letter in reversed(letters.items()):
        others = {one: other for one, other in letters.items() if one is not part}
        lines.append(_equation(symbol(letter), part, others))
    return lines


def _equation(left: Expression, right: Expression, letters: Mapping[Expression, str]) -> list[str]:
    pieces = [_signed(term, letters, first=place == 0) for place, term in enumerate(_shown_terms(right))]
    pieces[0] = f"{_mathml(left, {})}<mo>=</mo>{pieces[0]}"
    return [math_element(piece) for piece in pieces]


def math_element(inner: str) -> str:
    """A formula in the line, its fractions in full size."""
    return f'<math displaystyle="true">{inner}</math>'


ELLIPSIS = symbol("…")


def _shown_terms(expression: Expression) -> list[Expression]:
    """The terms of a sum, of many that are alike the first two and the last."""
    terms = list(_terms(expression))
    if len(terms) <= MOST_TERMS:
        return terms
    shapes = [_shape(term) for term in terms]
    common, count = Counter(shapes).most_common(1)[0]
    places = [place for place, shape in enumerate(shapes) if shape == common]
    if count <= MOST_TERMS:
        return terms
    dropped = set(places[2:-1])
    terms[places[2]] = ELLIPSIS
    return [term for place, term in enumerate(terms) if place not in dropped or term is ELLIPSIS]


def _shape(expression: Expression) -> str:
    """Its form up to the names of the quantities."""
    if expression.kind == "symbol":
        return "symbol"
    return f"{expression.kind}({','.join(p if isinstance(p, str) else _shape_of_part(p) for p in expression.parts)})"


def _shape_of_part(part: Any) -> str:
    return _shape(part) if isinstance(part, Expression) else repr(part)


def _signed(term: Expression, letters: Mapping[Expression, str], first: bool) -> str:
    factor = term.parts[0] if term.kind == "number" else _leading_number(term)
    if factor < 0.0:
        sign = '<mo form="prefix">&#8722;</mo>' if first else '<mo form="infix">&#8722;</mo>'
        return f"{sign}{_mathml(-term, letters, PRODUCT)}"
    plus = "" if first else '<mo form="infix">+</mo>'
    return plus + _mathml(term, letters, PRODUCT)


def _leading_number(term: Expression) -> float:
    return term.parts[0].parts[0] if term.kind == "product" and term.parts[0].kind == "number" else 1.0


def _mathml(expression: Expression, letters: Mapping[Expression, str], least: int = SUM) -> str:
    """Presentation MathML, in parentheses if it hangs together less tightly than ``least``."""
    if expression in letters:
        return f"<mi>{letters[expression]}</mi>"
    inner, tightness = _presented(expression, letters)
    return _in_parentheses(inner) if tightness < least else f"<mrow>{inner}</mrow>"


def _in_parentheses(inner: str) -> str:
    return f"<mrow><mo>(</mo>{inner}<mo>)</mo></mrow>"


def _presented(one: Expression, letters: Mapping[Expression, str]) -> tuple[str, int]:
    if one.kind == "number":
        inner, tightness = number_mathml(one.parts[0]), ATOM if one.parts[0] >= 0 else SUM
    elif one.kind == "symbol":
        inner, tightness = name_mathml(one.parts[0]), ATOM
    elif one.kind == "sum":
        terms = _shown_terms(one)
        inner = "".join(_signed(term, letters, first=place == 0) for place, term in enumerate(terms))
        tightness = SUM
    elif one.kind == "product":
        inner, tightness = _product(one, letters)
    elif one.kind == "quotient":
        inner = f"<mfrac>{_mathml(one.parts[0], letters)}{_mathml(one.parts[1], letters)}</mfrac>"
        tightness = PRODUCT
    elif one.kind == "power":
        base, exponent = _mathml(one.parts[0], letters, ATOM), _mathml(one.parts[1], letters)
        inner, tightness = f"<msup>{base}{exponent}</msup>", POWER
    else:
        inner, tightness = _function(one, letters), ATOM
    return inner, tightness


def _product(one: Expression, letters: Mapping[Expression, str]) -> tuple[str, int]:
    if _leading_number(one) < 0.0:
        return _signed(one, letters, first=True), SUM
    factors = [_mathml(part, letters, PRODUCT if place else POWER) for place, part in enumerate(one.parts)]
    if one.parts[0].kind == "number" and one.parts[1].kind == "number":
        return "<mo>·</mo>".join(factors), PRODUCT
    words = [_is_word(part, letters) for part in one.parts]
    joined = factors[0]
    for factor, before, word in zip(factors[1:], words, words[1:], strict=False):
        joined += ('<mspace width="0.2em"/>' if before or word else "<mo>&#8290;</mo>") + factor
    return joined, PRODUCT


def _is_word(factor: Expression, letters: Mapping[Expression, str]) -> bool:
    """Whether it is written as a word, which needs space around it."""
    base = factor.parts[0] if factor.kind == "power" else factor
    if base.kind == "symbol":
        return re.match(r"[^\W\d_]{2}", base.parts[0]) is not None
    return factor not in letters and base.kind in FUNCTIONS and base.kind not in ("sqrt", "abs", "mod", *COMPARISONS)


def _function(one: Expression, letters: Mapping[Expression, str]) -> str:
    parts = [_mathml(part, letters) for part in one.parts]
    if one.kind == "sqrt":
        return f"<msqrt>{parts[0]}</msqrt>"
    if one.kind == "abs":
        return f"<mo>|</mo>{parts[0]}<mo>|</mo>"
    if one.kind in COMPARISONS:  # 1 where it holds, else 0
        return f"<mo>[</mo>{parts[0]}<mo>{COMPARISONS[one.kind]}</mo>{parts[1]}<mo>]</mo>"
    if one.kind == "mod":
        return f"<mo>(</mo>{parts[0]}<mtext>&nbsp;mod&nbsp;</mtext>{parts[1]}<mo>)</mo>"
    if one.kind == "exp" and _is_short(one.parts[0]):
        return f"<msup><mi>e</mi>{parts[0]}</msup>"
    return f"<mi>{one.kind}</mi><mo>&#8289;</mo>{_in_parentheses('<mo>,</mo>'.join(parts))}"


def _is_short(exponent: Expression) -> bool:
    if exponent.kind != "product":
        return exponent.kind == "symbol"
    return len(exponent.parts) == 2 and all(part.kind in ("number", "symbol") for part in exponent.parts)


def number_mathml(value: float) -> str:
    """A number: multiples of pi and e by their letters, others in at most five digits."""
    if value < 0.0:
        return f'<mo form="prefix">&#8722;</mo>{number_mathml(-value)}'
    turns = Fraction(value / math.pi).limit_denominator(12)
    if turns.numerator in range(1, 25) and math.isclose(float(turns) * math.pi, value, rel_tol=1e-14):
        over = "<mi>π</mi>" if turns.numerator == 1 else f"<mn>{turns.numerator}</mn><mi>π</mi>"
        return over if turns.denominator == 1 else f"<mfrac><mrow>{over}</mrow><mn>{turns.denominator}</mn></mfrac>"
    if value == math.e:
        return "<mi>e</mi>"
    digits, _, exponent = f"{value:.{DIGITS}g}".partition("e")
    if not exponent:
        return f"<mn>{digits}</mn>"
    sign = '<mo form="prefix">&#8722;</mo>' if exponent.startswith("-") else ""
    tens = f"<msup><mn>10</mn><mrow>{sign}<mn>{abs(int(exponent))}</mn></mrow></msup>"
    return tens if digits == "1" else f"<mn>{digits}</mn><mo>·</mo>{tens}"


def name_mathml(name: str) -> str:
    """A quantity by its name: ``X10``, ``I1_2`` and ``z(FULD)`` have indices, words stand upright."""
    found = re.fullmatch(r"([^\W\d_]+)_?\(?(.*?)\)?", name)
    letters, index = found.groups() if found else (name, "")
    base = f"<mi>{escape(letters)}</mi>"
    if not index:
        return base
    inner = "<mo>,</mo>".join(
        f"<mn>{part}</mn>" if part.isdigit() else f"<mi>{escape(part)}</mi>" for part in index.split("_")
    )
    return f"<msub>{base}<mrow>{inner}</mrow></msub>"
