"""Additively separable structural equation models: y = F(y) + G(z), cyclic or not.

Every equation is a sum of functions of one variable each. Such systems are played in masked mode.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from cbo_gym._util.arguments import require_word
from cbo_gym._util.summation import add_up
from cbo_gym.errors import ArgumentError, OperationError
from cbo_gym.scm.components import Component, Linear, Polynomial, Sum, Tanh
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.intervention import Intervention, Mask
from cbo_gym.scm.noise import Distribution, Zero
from cbo_gym.scm.straight_line import StraightLineCode, compile_function
from cbo_gym.scm.system import NO_INTERVENTION, Draws, System, Values, Variable, own_noise
from cbo_gym.scm.values import Composition, Floats

REWARD = "Y"
NO_NOISE = Zero()
# Largest change in the last sweep, relative to the size of the values.
TOLERANCE = 1e-12
# Enough for a contraction at rate 0.98 to meet the tolerance.
MAX_ITERATIONS = 2_000
# Number of samples in a block, which fits the processor's cache and stops when all of them have settled.
BLOCK = 2**12
# Probability of each tail of an unbounded noise; the proof of contraction ignores the tails.
TAIL_PROBABILITY = 2.0**-40
# Rounding error allowed at the ends of the box.
SLACK = 1e-9

# Lower and upper ends, shape (N, 1).
Box = tuple[np.ndarray, np.ndarray]
# Smallest and largest value of each node that a hard intervention sets.
SetRanges = Mapping[str, tuple[float, float]]
NOTHING_SET: SetRanges = {}
# Types of single numbers.
SCALARS = {float, np.float64}


@dataclass(frozen=True)
class Total:
    """The payoff ``sum_i h(y[i])``, a function of the nodes' values by name, arrays of one shape.

    Args:
        names: the nodes in the sum.
        function: h; None for the identity, which takes tensors as well.
    """

    names: tuple[str, ...]
    function: Component | None = None

    def __call__(self, nodes: Mapping[str, Any]) -> Any:
        values = [nodes[name] for name in self.names]
        return add_up(values if self.function is None else map(self.function, values))


class SeparableSEM(System):
    """``y = F(y) + G(z)`` with ``z = x * b``: N base arms with random signals b, some of which x selects.

    Node i of N belongs to arm i: ``y[i] = sum_j F[i, j](y[j]) + G[i](x[i] b[i])``. The reward ``Y = h(y)`` comes
    last. An acyclic system is solved by substitution, a cyclic one by iteration to the fixed point; the constructor
    proves that there is exactly one in a box that the equations never leave.

    The soft parameters are the super arm x, 0 or 1 for each arm. Besides nodes and reward, the values include the
    exogenous signal of every arm, ``z1``, ..., ``zN``, as an agent sees it.

    Args:
        signals: the distributions of ``b[0]``, ..., ``b[N - 1]``.
        components: ``(i, j) -> F[i, j]``, the function of node j in the equation of node i, counted from 0.
        names: names of the nodes, whose signals are then ``z(name)``; None for ``y1``, ..., ``yN``.
        activations: G, one per node; None for the identity.
        payoff: h, a function of the nodes' values by name; None for their sum.
        mask: what x acts on: ``"exogenous"``, z = x * b; or ``"endogenous"``, z = b and Y = h(x * y).
        feedback: ``"all"``: every node is observed; ``"selected"``: those of the selected arms, and 0 for the others.
        model_noise: noise in the equation of each node.
        signal_noise: error of the observation of selected signals.
        node_noise: error of the observation of nodes. The reward is the payoff of the observed nodes.

    Attributes:
        variables: the exogenous variables; the nodes have equations rather than variables.
        nodes: the nodes in the order of the arms, then the reward.
        exogenous: ``z1``, ..., ``zN``.
        arguments: all arguments by name.
        contraction: spectral radius of the largest slopes, below 1, on a cyclic graph; 0 on an acyclic one.

    Raises:
        ArgumentError: if the numbers of signals, names and activations differ, an edge is a self loop or has an unknown
            node, an option is unknown, or a cyclic system is not proven to be a contraction.

    Source: Bauschmann & Maghsudi (2026), Graph structured combinatorial semi-bandit, sec. II; the keywords are the
    extensions of its appendix B1.
    """

    def __init__(
        self,
        signals: Sequence[Distribution],
        components: Mapping[tuple[int, int], Component],
        *,
        names: Sequence[str] | None = None,
        activations: Sequence[Component] | None = None,
        payoff: Composition | None = None,
        mask: Literal["exogenous", "endogenous"] = "exogenous",
        feedback: Literal["all", "selected"] = "all",
        model_noise: Distribution = NO_NOISE,
        signal_noise: Distribution = NO_NOISE,
        node_noise: Distribution = NO_NOISE,
    ) -> None:
        count = len(signals)
        if count == 0:
            raise ArgumentError("a separable SEM needs at least one signal")
        for i, j in components:
            if i == j or not (0 <= i < count and 0 <= j < count):
                raise ArgumentError(f"components go between two different nodes from 0 to {count - 1}; given {(i, j)}")
        for field, values in (("name", names), ("activation", activations)):
            if values is not None and len(values) != count:
                raise ArgumentError(f"give one {field} for each of {count} nodes; given {len(values)}")
        require_word("mask", mask, ("exogenous", "endogenous"))
        require_word("feedback", feedback, ("all", "selected"))
        self.arguments: dict[str, Any] = {
            "signals": tuple(signals),
            "components": dict(components),
            "names": names,
            "activations": tuple(activations or [Linear(1.0)] * count),
            "payoff": payoff,
            "mask": mask,
            "feedback": feedback,
            "model_noise": model_noise,
            "signal_noise": signal_noise,
            "node_noise": node_noise,
        }
        if names is None:
            self.exogenous = tuple(f"z{i}" for i in range(1, count + 1))
            names = tuple(f"y{i}" for i in range(1, count + 1))
        else:
            self.exogenous = tuple(f"z({name})" for name in names)
        self.reward = REWARD
        self.nodes = (*names, REWARD)
        self.action_dim = count
        if mask == "endogenous":
            self.action_nodes = {REWARD: tuple(range(count))}
        else:
            self.action_nodes = {name: (i,) for i, name in enumerate(names)}
        self.payoff: Composition = payoff or Total(tuple(names))
        edges = [(names[j], names[i]) for i, j in components] + [(name, REWARD) for name in names]
        graph = CausalDiagram(self.nodes, edges, allow_cycles=True)
        self.diagram = CausalDiagram(self.nodes, edges, allow_cycles=not graph.is_acyclic)
        sources = {f"b{i}": signal for i, signal in enumerate(signals, 1)}
        sources |= {f"error of {name}": signal_noise for name in self.exogenous}
        sources |= {f"noise of {name}": model_noise for name in names}
        sources |= {f"error of {name}": node_noise for name in names}
        self.variables = tuple(Variable(n, own_noise, noise=d, observed=False) for n, d in sources.items())
        self.noisy = tuple(v for v in self.variables if not isinstance(v.noise, Zero))
        self.contraction = 0.0 if graph.is_acyclic else self._prove_contraction()[0]
        self._straight_line = self._compile()
        self._last_solver: tuple[SetRanges, Callable[..., Values]] | None = None

    def propagate(self, noise: Draws, intervention: Intervention = NO_INTERVENTION) -> Values:
        """Return the values of the selected signals, the nodes and the reward, by name; see :class:`System`.

        A hard intervention replaces the equation of a node; the node is still observed with an error.

        Raises:
            ArgumentError: for a hard intervention in a part of a batch, or under which a cyclic system is not proven to
                be a contraction.
        """
        solve = self._solver_under(intervention.hard) if intervention.hard else self._straight_line
        return solve(noise, intervention.soft, intervention.hard)

    def _solver_under(self, hard: Mapping[str, tuple[Mask, Floats]]) -> Callable[..., Values]:
        """Return the solver of the system under a hard intervention; the last solver is cached."""
        if partial_names := [name for name, (mask, _) in hard.items() if mask is not True]:
            raise ArgumentError(
                f"in a separable SEM a node is set in the whole batch or not at all; given a mask of {partial_names}"
            )
        set_ranges = {name: (float(np.min(values)), float(np.max(values))) for name, (_, values) in hard.items()}
        if self._last_solver is None or self._last_solver[0] != set_ranges:
            self._last_solver = set_ranges, self._compile(set_ranges)
        return self._last_solver[1]

    @property
    def signals(self) -> tuple[Distribution, ...]:
        """Distributions of b, in the order of the arms."""
        return self.arguments["signals"]

    def _compile(self, set_ranges: SetRanges = NOTHING_SET) -> Callable[..., Values]:
        """Compile one function that solves the system, node by node."""
        names, arguments = self.nodes[:-1], self.arguments
        masks_signals, masks_nodes = arguments["mask"] == "exogenous", arguments["mask"] == "endogenous"
        components, diagram = self._components(set_ranges), self.diagram.mutilate(set_ranges)
        code, observations = StraightLineCode(self.variables), []
        for i, (name, signal) in enumerate(zip(names, self.exogenous, strict=True)):
            signal_code = code.noise(f"b{i + 1}")
            mask = f"soft[{i}] * " if masks_signals else ""
            code.add(f"z{i} = {mask}{signal_code}")
            activation = arguments["activations"][i]
            input_code = f"z{i}" if activation == Linear(1.0) else f"{code.bind(f'activation_{i}', activation)}(z{i})"
            input_code = code.plus_noise(input_code, f"noise of {name}")
            if name in set_ranges:
                input_code = f"hard[{code.name_identifier(name)}][1]"
            code.add(f"g{i} = {input_code}")
            observations.append(f"z{i} = {mask}({code.plus_noise(signal_code, f'error of {signal}')})")
            observations.append(f"y{i} = {code.plus_noise(f'y{i}', f'error of {name}')}")
        if diagram.is_acyclic:
            for i in (self.nodes.index(name) for name in diagram.topological_order if name != REWARD):
                terms = [_term(code, i, j, component) for (effect, j), component in components.items() if effect == i]
                code.add(f"y{i} = {' + '.join([f'g{i}', *terms])}")
        else:
            nodes, inputs = (", ".join(f"{letter}{i}" for i in range(len(names))) for letter in "yg")
            solve = code.bind("solve", _FixedPoint(components, self._prove_contraction(set_ranges)[1]))
            code.add(f"{nodes} = {solve}(({inputs}))")
        code.add(*observations)
        masked_node = "soft[{0}] * y{0}"
        argument = masked_node if masks_nodes else "y{0}"
        payoff_arguments = {name: argument.format(i) for i, name in enumerate(names)}
        if self.payoff == Total(names):
            code.add(f"reward = {' + '.join(payoff_arguments.values())}")
        else:
            code.add(f"reward = {code.bind('payoff', self.payoff)}({code.dictionary(payoff_arguments)})")
        observed = masked_node if arguments["feedback"] == "selected" else "y{0}"
        values = {signal: f"z{i}" for i, signal in enumerate(self.exogenous)}
        values |= {name: observed.format(i) for i, name in enumerate(names)}
        return code.compile({**values, REWARD: "reward"})

    def _components(self, set_ranges: SetRanges) -> dict[tuple[int, int], Component]:
        components: dict[tuple[int, int], Component] = self.arguments["components"]
        return {(i, j): component for (i, j), component in components.items() if self.nodes[i] not in set_ranges}

    def _prove_contraction(self, set_ranges: SetRanges = NOTHING_SET) -> tuple[float, Box]:
        """Find a box that the equations map into itself, and the spectral radius of the largest slopes there.

        The box comes from interval arithmetic. If the spectral radius of the matrix of largest slopes is below 1, the
        equations are a contraction of the box in a weighted maximum norm (Bertsekas & Tsitsiklis 1989, sec. 3.1).
        """
        low, high = input_range = self._input_range(set_ranges)
        while np.isfinite(low).all() and np.isfinite(high).all():
            image, slopes = np.array(input_range), np.zeros((self.action_dim, self.action_dim))
            for (i, j), component in self._components(set_ranges).items():
                slopes[i, j] = component.steepest(low[j], high[j])
                image[:, i] += component.image(low[j], high[j])
            rate = float(np.abs(np.linalg.eigvals(slopes)).max())
            if rate >= 1.0:
                raise ArgumentError(
                    "the cyclic system is not proven to be a contraction: the spectral radius of its largest slopes "
                    f"is {rate:.4g} and must be below 1; make the components on its cycles flatter"
                )
            if (low <= image[0]).all() and (image[1] <= high).all():
                return rate, (low[:, None], high[:, None])
            margin = 0.01 * (image[1] - image[0])
            low, high = np.minimum(low, image[0] - margin), np.maximum(high, image[1] + margin)
        raise ArgumentError("the cyclic system is not a contraction: its values diverge; make the components flatter")

    def _input_range(self, set_ranges: SetRanges) -> tuple[np.ndarray, np.ndarray]:
        """Return intervals that contain ``G[i](z[i])`` plus the model noise, or the values of a node that is set."""
        arguments = self.arguments
        ends = np.array([TAIL_PROBABILITY, 1.0 - TAIL_PROBABILITY])
        ranges = np.empty((self.action_dim, 2))
        for i, (signal, activation) in enumerate(zip(self.signals, arguments["activations"], strict=True)):
            low, high = signal.from_uniform(ends)
            if arguments["mask"] == "exogenous":
                low, high = min(low, 0.0), max(high, 0.0)
            ranges[i] = activation.image(float(low), float(high))
        ranges += arguments["model_noise"].from_uniform(ends)
        for name, values in set_ranges.items():
            ranges[self.nodes.index(name)] = values
        low, high = ranges.T
        return low, high

    def __reduce__(self) -> tuple[object, ...]:
        return partial(SeparableSEM, **self.arguments), ()

    def __repr__(self) -> str:
        return f"SeparableSEM({self.diagram!r})"


def _term(code: StraightLineCode, effect: int, cause: int, component: Component) -> str:
    # A product is much faster than a call.
    if isinstance(component, Linear):
        return f"{code.bind(f'component_{effect}_{cause}', component.slope)} * y{cause}"
    return f"{code.bind(f'component_{effect}_{cause}', component)}(y{cause})"


class _Functions:
    """The distinct nonlinear functions of a cyclic system, C functions of one node each.

    Attributes:
        causes: index of the node that is the argument of each function.
        weights: their coefficients in each equation, shape ``(N, C)``.
        constants: constants to subtract from the functions, shape ``(C,)``.
    """

    def __init__(self, components: Mapping[tuple[int, int], Component], count: int) -> None:
        tanhs, powers, others = (defaultdict[Any, np.ndarray](lambda: np.zeros(count)) for _ in range(3))
        for i, j, component in _terms(components):
            if isinstance(component, Tanh):
                tanhs[j, component.scale, component.shift][i] += component.amplitude
            elif isinstance(component, Polynomial):
                for k, coefficient in enumerate(component.coefficients, 1):
                    if coefficient:
                        powers[j, k][i] += coefficient
            elif not isinstance(component, Linear):
                others[j, component][i] += 1.0
        columns = [*tanhs.values(), *powers.values(), *others.values()]
        self.weights = np.array(columns).reshape(-1, count).T
        self.causes = [key[0] for key in (*tanhs, *powers, *others)]
        self._scales, self._shifts = np.array([key[1:] for key in tanhs]).reshape(-1, 2).T[:, :, None]
        self._exponents = [k for _, k in powers]
        self._others = [component for _, component in others]
        self.constants = np.zeros(len(columns))
        self.constants[: len(tanhs)] = np.tanh(self._shifts[:, 0])

    def solver(self, inner: np.ndarray) -> Callable[[list[float]], list[float]]:
        """Compile a solver for floats: given ``start``, it returns ``values = f(y)`` at ``y = start + inner @ values``.

        A sweep uses the values that it has already updated (Gauss-Seidel); plain iteration needs no fewer sweeps. In
        the code, s is the start, y an argument, f a function's value at y, and o (old) the y of the last sweep.
        """
        scope: dict[str, Any] = {"tanh": math.tanh, "unsettled": _settling_error}
        tanhs = zip(self._scales[:, 0].tolist(), self._shifts[:, 0].tolist(), strict=True)
        formulas = [f"tanh({scale!r} * y{{0}} + {shift!r})" for scale, shift in tanhs]
        formulas += [" * ".join(["y{0}"] * k) for k in self._exponents]
        for index, component in enumerate(self._others):
            scope[f"component_{index}"] = component
            formulas.append(f"float(component_{index}(y{{0}}))")
        indices = range(len(formulas))
        rows = [
            " + ".join([f"s{i}", *(f"{inner[i, j].item()!r} * f{j}" for j in indices if inner[i, j])]) for i in indices
        ]
        joined = {letter: ", ".join(f"{letter}{i}" for i in indices) for letter in "syf"}
        settled = [f"abs(y{i} - o{i}) <= {TOLERANCE} * (1.0 + abs(y{i}))" for i in indices]
        values = [f"f{i} = {formula.format(i)}" for i, formula in enumerate(formulas)]
        sweep = [f"o{i} = y{i}; y{i} = {row}; {value}" for i, (row, value) in enumerate(zip(rows, values, strict=True))]
        lines = [
            f"[{joined['s']}] = [{joined['y']}] = start",
            *values,
            f"for _ in range({MAX_ITERATIONS}):",
            *(f"    {line}" for line in sweep),
            f"    if {' and '.join(settled) or 'True'}:",
            f"        return [{joined['f']}]",
            "raise unsettled()",
        ]
        return compile_function("start", lines, scope)

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Return the functions' values at their arguments ``y``, both of shape ``(C, n)``."""
        values, tanhs = np.empty_like(y), len(self._scales)
        np.tanh(self._scales * y[:tanhs] + self._shifts, out=values[:tanhs])
        for index, k in enumerate(self._exponents, tanhs):
            values[index] = math.prod([y[index]] * k)
        for index, component in enumerate(self._others, tanhs + len(self._exponents)):
            values[index] = component(y[index])
        return values


def _terms(components: Mapping[tuple[int, int], Component]) -> Iterator[tuple[int, int, Component]]:
    """Yield the effect, cause and function of all terms of all edges."""
    for (i, j), component in components.items():
        for term in component.parts if isinstance(component, Sum) else [component]:
            yield i, j, term


class _FixedPoint:
    """Solver of ``y = F(y) + g`` on a cyclic graph by ``y <- (I - A)^-1 (g + N(y))``, with F = A + N and A linear.

    With largest slopes |A| and |N|, this splitting is a contraction if |A| + |N| has a spectral radius below 1, and
    converges no slower than plain iteration (Varga 2000, Matrix iterative analysis, sec. 3.6). Unlike plain iteration
    it may leave the box on its way, so the end is checked. Only the arguments of N are iterated.
    """

    def __init__(self, components: Mapping[tuple[int, int], Component], box: Box) -> None:
        self._low, self._high = box[0] - SLACK, box[1] + SLACK
        count = len(self._low)
        linear = np.zeros((count, count))
        for i, j, component in _terms(components):
            if isinstance(component, Linear):
                linear[i, j] += component.slope
        self._inverse = np.linalg.inv(np.eye(count) - linear)
        self._functions = _Functions(components, count)
        self._causes = np.array(self._functions.causes, dtype=int)
        # Effects of the functions' values on the nodes, and on the nodes that are arguments.
        self._effects = self._inverse @ self._functions.weights
        self._inner = self._effects[self._causes]
        self._solve_floats = self._functions.solver(self._inner)
        self._offset = -self._effects @ self._functions.constants

    def __call__(self, inputs: Draws) -> np.ndarray | list[float]:
        """Return the solution for N numbers, a list, or for arrays that broadcast together, shape ``(N, ...)``."""
        if {*map(type, inputs)} <= SCALARS:
            return self._solve_one(np.array(inputs))
        columns = np.broadcast_arrays(*inputs)
        shape = columns[0].shape
        points = np.stack(columns).reshape(len(columns), -1)
        starts = range(0, points.shape[1], BLOCK)
        blocks = [self._solve(points[:, start : start + BLOCK]) for start in starts]
        return np.concatenate(blocks, axis=1).reshape(-1, *shape)

    def _solve_one(self, inputs: np.ndarray) -> list[float]:
        """Solve for one experiment, shape ``(N,)``; plain floats are faster for few numbers."""
        linear_solution = self._inverse @ inputs + self._offset
        values = self._solve_floats(linear_solution[self._causes].tolist())
        nodes: np.ndarray = linear_solution + self._effects @ values
        self._require_inside(nodes[:, None])
        return nodes.tolist()

    def _solve(self, inputs: np.ndarray) -> np.ndarray:
        linear_solution = self._inverse @ inputs + self._offset[:, None]
        y = start = linear_solution[self._causes]
        for _ in range(MAX_ITERATIONS):
            old, y = y, start + self._inner @ self._functions(y)
            if (np.abs(y - old) <= TOLERANCE * (1.0 + np.abs(y))).all():
                break
        else:
            raise _settling_error()
        nodes = linear_solution + self._effects @ self._functions(y)
        self._require_inside(nodes)
        return nodes

    def _require_inside(self, nodes: np.ndarray) -> None:
        if not ((self._low <= nodes) & (nodes <= self._high)).all():
            raise OperationError("the cyclic system was driven by signals outside the ranges of their distributions")


def _settling_error() -> OperationError:
    return OperationError(f"the cyclic system did not settle within {MAX_ITERATIONS} iterations")
