"""TrainDelay: the fitted network, its only solution, and the fitting script on simulated hours."""

import networkx as nx
import numpy as np
import pytest

from cbo_gym.problems import SuperArms
from cbo_gym.problems.systems.train_delay import SHAPES, load_fit, train_delay
from cbo_gym.scm import Intervention, Linear, Tanh
from tests.support.examples import load_example


@pytest.fixture(scope="module")
def script():
    return load_example("fit_train_delay")


@pytest.fixture(scope="module")
def simulated(script, tmp_path_factory):
    """The known components, the hours and the edges of a simulated network."""
    known = {(1, 0): Linear(0.5), (2, 1): Tanh(0.1, 4.0, 0.0), (0, 2): Linear(0.3), (3, 2): Linear(0.4)}
    hourly, connections = script.simulate(tmp_path_factory.mktemp("network"))
    data = script.read_hours(hourly)
    return known, data, script.read_connections(connections, data.stations)


def plain_map(fitted, y, b):
    """F(y) + b, straight from the file."""
    names = [station["name"] for station in fitted["stations"]]
    result = b.copy()
    for edge in fitted["edges"]:
        i, j = names.index(edge["effect"]), names.index(edge["cause"])
        for shape, coefficient in edge["coefficients"].items():
            x = y[..., j]
            value = {
                "linear": x,
                "cubic": x**3,
                "tanh": np.tanh(4 * x),
                "tanh_shifted_by_half": np.tanh(4 * x - 2) - np.tanh(-2),
                "tanh_shifted_by_one": np.tanh(4 * x - 4) - np.tanh(-4),
            }[shape]
            result[..., i] += coefficient * value
    return result


def test_the_network_and_no_hourly_values():
    problem, fitted = train_delay(), load_fit()
    graph = problem.scm.diagram.subgraph(problem.scm.nodes[:-1]).graph
    assert graph.number_of_nodes() == len(fitted["stations"]) == 20
    assert graph.number_of_edges() == len(fitted["edges"]) == 62
    assert not nx.is_directed_acyclic_graph(graph)
    assert problem.data(SuperArms).size == 6
    # Every direct connection has an effect.
    assert all(edge["coefficients"]["linear"] >= 0.01 for edge in fitted["edges"])
    assert all(0.0 == signal.quantiles[0] < signal.quantiles[-1] <= 1.0 for signal in problem.scm.signals)
    assert set(fitted) == {"unit_minutes", "stations", "edges", "errors_minutes"}
    assert all(len(station["quantiles"]) == 21 for station in fitted["stations"])


def test_there_is_one_solution_for_every_signal():
    """Plain iteration of the file's equations from far apart ends at the model's solution."""
    problem, fitted = train_delay(), load_fit()
    assert problem.scm.contraction < 0.8
    rng = np.random.default_rng(0)
    corners = rng.integers(0, 2, (15, 20)).astype(float)
    signals = np.concatenate([np.zeros((1, 20)), np.ones((1, 20)), corners, rng.random((15, 20))])
    largest = np.array([signal.quantiles[-1] for signal in problem.scm.signals])
    signals *= largest
    ours = problem.scm.propagate(tuple(signals.T), Intervention((1.0,) * 20))
    solution = problem.scm.stack(ours)[:, :-1]
    highest = solution[1]
    for start in (np.zeros(20), highest, rng.random(20) * highest):
        y = np.broadcast_to(start, signals.shape)
        for _ in range(150):
            y = plain_map(fitted, y, signals)
        np.testing.assert_allclose(y, solution, rtol=1e-8, atol=1e-10)


def test_the_script_recovers_a_known_network(script, simulated):
    known, data, edges = simulated
    assert set(edges) == set(known)
    scaled = script.scale(data)
    fitted = script.fit(scaled, edges, contraction=0.8)
    network = script.describe(data, scaled, fitted, edges)
    minutes = script.reconstruct(network, scaled)
    for what in minutes:
        ours = script.errors(minutes[what], scaled, ~scaled.training)["rms"]
        mean = script.errors(script.baselines(scaled)["station's mean"], scaled, ~scaled.training)["rms"]
        assert ours < 0.05 * mean
    low, high = np.quantile(scaled.delays - fitted.baseline, [0.05, 0.95], axis=0)
    for (i, j), component in known.items():
        x = np.linspace(low[j], high[j], 30)
        learnt = sum(v * SHAPES[shape](x) for (a, b, shape), v in fitted.coefficients.items() if (a, b) == (i, j))
        minutes_of = 10.0 * component((x * scaled.unit + scaled.unit * fitted.baseline[j]) / 10.0)
        expected = (minutes_of - minutes_of[0]) / scaled.unit
        np.testing.assert_allclose(learnt - learnt[0], expected, atol=0.03)


def test_the_slopes_of_each_fitted_equation_are_bounded(script, simulated):
    _, data, edges = simulated
    scaled = script.scale(data)
    loose, tight = (script.fit(scaled, edges, contraction) for contraction in (0.8, 0.2))
    networks = [script.describe(data, scaled, fitted, edges) for fitted in (loose, tight)]
    rates = [script.network_sem(network).contraction for network in networks]
    assert rates[1] < 0.2 < rates[0]


def test_files_with_other_columns_are_named(script, tmp_path):
    path = tmp_path / "hours.csv"
    path.write_text("hr,st,total,n\n")
    with pytest.raises(ValueError, match=r"hours.csv must have the columns .* it lacks \['added'\]"):
        script.read_hours(path)
