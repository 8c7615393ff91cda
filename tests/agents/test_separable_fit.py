"""Separable systems against independent solutions, and their regression on data from known systems."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import least_squares

from cbo_gym.agents.super_arms.output_error import refine
from cbo_gym.agents.super_arms.separable_fit import (
    SeparableModel,
    backward_elimination,
    coefficient_posterior,
    fit_by_base_arm,
    fit_jointly,
)
from cbo_gym.agents.super_arms.separable_system import SeparableSystem

COMPONENTS = (lambda y: y, lambda y: np.sin(2.0 * np.pi * y))
NODES = 5


def a_system(cyclic: bool = False) -> SeparableSystem:
    coefficients = np.zeros((2, NODES, NODES))
    coefficients[1, 1, 0], coefficients[0, 2, 0], coefficients[1, 4, 2], coefficients[0, 4, 3] = 0.5, 0.6, 0.4, 0.55
    if cyclic:
        coefficients[0, 0, 4], coefficients[1, 4, 2] = 0.3, 0.08
    return SeparableSystem(COMPONENTS, coefficients)


def rounds_of(system: SeparableSystem, rounds: int, error: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Super arms of three base arms, and z and y as observed with errors."""
    rng = np.random.default_rng(0)
    super_arms = (rng.random((rounds, NODES)).argsort(axis=1) < 3).astype(float)
    exogenous = super_arms * rng.random((rounds, NODES))
    nodes = system.solve(exogenous)
    return super_arms, exogenous, nodes + error * rng.standard_normal(nodes.shape)


class TestSolve:
    @pytest.mark.parametrize("cyclic", [False, True])
    def test_solves_the_equations(self, cyclic: bool) -> None:
        system = a_system(cyclic)
        for z in np.random.default_rng(1).random((10, NODES)):

            def residual(y: np.ndarray, z: np.ndarray = z) -> np.ndarray:
                total = z - y
                for k, component in enumerate(COMPONENTS):
                    for i in range(NODES):
                        for j in range(NODES):
                            total[i] += system.coefficients[k, i, j] * component(y[j])
                return total

            before, nodes = z.copy(), system.solve(z)
            np.testing.assert_array_equal(z, before)
            np.testing.assert_allclose(residual(nodes), 0.0, atol=1e-5)
            np.testing.assert_allclose(nodes, z + system.influence(nodes), atol=1e-5)

    def test_a_diverging_cycle_is_an_error(self) -> None:
        coefficients = np.zeros((2, NODES, NODES))
        coefficients[0, 0, 1] = coefficients[0, 1, 0] = 1.5
        system = SeparableSystem(COMPONENTS, coefficients)
        with pytest.raises(ArithmeticError, match="do not converge"):
            system.solve(np.ones(NODES))

    def test_steep_cycles_are_flattened_and_other_edges_kept(self) -> None:
        coefficients = np.zeros((2, NODES, NODES))
        coefficients[0, 0, 1], coefficients[0, 1, 0], coefficients[0, 3, 2] = 4.0, 1.0, 5.0
        ends = np.zeros(NODES), np.ones(NODES)
        flat = SeparableSystem(COMPONENTS, coefficients).damp_cycles(*ends)
        on_the_cycle = flat.coefficients[0, :2, :2]
        assert np.abs(np.linalg.eigvals(on_the_cycle)).max() == pytest.approx(0.95)
        assert on_the_cycle[0, 1] == pytest.approx(4.0 * on_the_cycle[1, 0])
        assert flat.coefficients[0, 3, 2] == 5.0
        assert flat.damp_cycles(*ends) is flat or flat.damp_cycles(*ends).coefficients == pytest.approx(
            flat.coefficients
        )

    def test_cycles_lose_their_weakest_edge(self) -> None:
        system = a_system(cyclic=True)
        assert not system.is_acyclic
        smaller = system.without_cycles()
        assert smaller.is_acyclic
        np.testing.assert_array_equal(np.argwhere(system.coefficients != smaller.coefficients), [[1, 4, 2]])
        acyclic = a_system()
        assert acyclic.without_weakest_edge_on_a_cycle() is acyclic


class TestRegression:
    @pytest.mark.parametrize("cyclic", [False, True])
    def test_recovers_a_system_from_exact_data(self, cyclic: bool) -> None:
        truth = a_system(cyclic)
        _, exogenous, nodes = rounds_of(truth, 200)
        fitted = fit_jointly(exogenous, nodes, COMPONENTS, acyclic=not cyclic)
        np.testing.assert_allclose(fitted.coefficients, truth.coefficients, atol=1e-3)

    def test_errors_in_the_nodes_do_not_flatten_the_functions(self) -> None:
        truth = a_system()
        _, exogenous, nodes = rounds_of(truth, 1500, error=0.1)
        fitted = fit_jointly(exogenous, nodes, COMPONENTS, acyclic=True)
        np.testing.assert_array_equal(fitted.coefficients != 0.0, truth.coefficients != 0.0)
        np.testing.assert_allclose(fitted.coefficients, truth.coefficients, atol=0.03)
        # Regression on the nodes as observed would lose a fifth of a periodic edge: exp(-2 pi^2 0.1^2) = 0.82.
        features = np.sin(2.0 * np.pi * nodes[:, 0])
        naive = features @ (nodes - exogenous)[:, 1] / (features @ features)
        assert naive < 0.43

    def test_one_fit_a_base_arm_gives_the_same_system(self) -> None:
        truth = a_system()
        super_arms, exogenous, nodes = rounds_of(truth, 400)
        fitted = fit_by_base_arm(super_arms, exogenous, nodes, COMPONENTS)
        np.testing.assert_allclose(fitted.coefficients, truth.coefficients, atol=5e-3)

    def test_a_steep_system_is_recovered_where_errors_hide_what_comes_first(self) -> None:
        coefficients = np.zeros((2, NODES, NODES))
        coefficients[0, 1, 0], coefficients[1, 2, 1], coefficients[1, 3, 2], coefficients[1, 4, 3] = 0.8, 1.2, 0.5, 0.2
        truth = SeparableSystem((lambda y: y, np.square), coefficients)
        rng = np.random.default_rng(3)
        super_arms = rng.random((150, NODES)).argsort(axis=1) < 3
        exogenous = super_arms * (0.5 + rng.random((150, NODES)))
        nodes = truth.solve(exogenous)  # from 1 to 230
        fitted = fit_jointly(exogenous, nodes + 0.3 * rng.standard_normal(nodes.shape), truth.components, acyclic=True)
        unexplained = fitted.solve(exogenous) - nodes
        assert np.sqrt(np.mean(unexplained**2)) < 0.1  # regressions of node by node alone leave 9 to 16

    def test_a_polish_ends_at_least_squares_of_what_is_predicted(self) -> None:
        truth = a_system()
        _, exogenous, nodes = rounds_of(truth, 60, error=0.1)
        used = truth.coefficients != 0.0

        def at(values: np.ndarray) -> SeparableSystem:
            coefficients = np.zeros_like(truth.coefficients)
            coefficients[used] = values
            return SeparableSystem(COMPONENTS, coefficients)

        start = 0.7 * truth.coefficients[used]
        best = least_squares(lambda values: (at(values).solve(exogenous) - nodes).ravel(), start).x
        found = refine(at(start), exogenous, nodes)
        np.testing.assert_allclose(found.coefficients[used], best, atol=2e-3)
        assert not found.coefficients[~used].any()

    def test_features_go_in_the_order_of_what_least_squares_lose_without_them(self) -> None:
        rng = np.random.default_rng(0)
        features = rng.standard_normal((40, 7)) + rng.standard_normal((40, 1))
        target = features @ [0.0, 2.0, 0.3, 0.0, -1.0, 0.6, 0.1] + 0.2 * rng.standard_normal(40)

        def left_by(chosen: list[int]) -> float:
            residual = target - features[:, chosen] @ np.linalg.lstsq(features[:, chosen], target)[0]
            return float(residual @ residual)

        expected, chosen = [], [0, 1, 2, 4, 5, 6]
        while chosen:
            expected.append((left_by(chosen), list(chosen)))
            chosen.remove(min(chosen, key=lambda one: left_by([each for each in chosen if each != one])))
        proposed = np.isin(np.arange(7), expected[0][1])
        steps = backward_elimination(proposed, features.T @ features, features.T @ target, float(target @ target))
        found = [(left, np.flatnonzero(present).tolist()) for left, present in steps]
        assert [sets for _, sets in found] == [sets for _, sets in expected]
        np.testing.assert_allclose([left for left, _ in found], [left for left, _ in expected], rtol=1e-9)

    def test_the_posterior_shrinks_with_the_rounds_around_the_fit(self) -> None:
        widths = []
        for rounds in (50, 800):
            _, exogenous, nodes = rounds_of(a_system(), rounds, error=0.1)
            system = fit_jointly(exogenous, nodes, COMPONENTS, acyclic=True)
            posterior = coefficient_posterior(system, exogenous, nodes)
            rng = np.random.default_rng(0)
            draws = np.stack([posterior(rng) for _ in range(400)])
            used = system.coefficients != 0.0
            assert not draws[:, ~used].any()
            spread = draws[:, used].std(axis=0)
            assert (np.abs(draws[:, used].mean(axis=0) - system.coefficients[used]) < 0.2 * spread).all()
            widths.append(spread.mean())
        assert 2.5 < widths[0] / widths[1] < 6.5  # a factor of 4 for 16 times the rounds


class TestRefitting:
    @staticmethod
    def model() -> tuple[SeparableModel, list[int]]:
        fitted: list[int] = []

        def fit(_: np.ndarray, exogenous: np.ndarray, nodes: np.ndarray) -> SeparableSystem:
            fitted.append(len(nodes))
            return fit_jointly(exogenous, nodes, COMPONENTS, acyclic=True)

        return SeparableModel(fit), fitted

    def test_well_explained_rounds_wait(self) -> None:
        model, fitted = self.model()
        for z, x, y in zip(*rounds_of(a_system(), 140, error=0.1), strict=True):
            model.add(z, x, y)
            model.refit_if_needed()
        assert len(fitted) < 30
        late = [n for n in fitted if n >= 100]
        assert all(after >= 1.09 * before for before, after in pairwise(late))

    def test_a_worse_fit_is_not_taken(self) -> None:
        empty = SeparableSystem(COMPONENTS, np.zeros((2, NODES, NODES)))
        fits = iter([a_system(), empty])
        model = SeparableModel(lambda *_: next(fits))
        for number, past in enumerate(zip(*rounds_of(a_system(), 150, error=0.1), strict=True), start=1):
            model.add(*past)
            assert number not in (100, 150) or model.refit_if_needed() == (number == 100)
        assert model.system is not empty
        assert next(fits, None) is None  # it was tried

    def test_a_change_is_noticed(self) -> None:
        model, fitted = self.model()
        before, after = a_system(), a_system()
        after.coefficients[1, 1, 0] = -0.5
        for system in (before, after):
            for x, z, y in zip(*rounds_of(system, 100, error=0.02), strict=True):
                model.add(x, z, y)
                model.refit_if_needed()
        assert any(100 < n <= 115 for n in fitted)
