"""Fit the separable SEM of CBO/TrainDelay to hourly delays at German stations.

    python examples/fit_train_delay.py HOURLY.csv CONNECTIONS.csv --out train_delay.yaml --figure train_delay.png
    python examples/fit_train_delay.py --quick     # simulated hours of a small network instead of files

HOURLY.csv has the columns hr, st, added, total, n: hour, station, the mean over its trains of departure delay less
arrival delay (minutes), the mean of the larger of the two delays (minutes), and the number of trains. CONNECTIONS.csv
has the columns from, to, count: direct connections seen in the trains' tracks.

The model is ``y = F(y) + b``. b is ``added`` above the station's smallest value, y is ``total`` above the delay of the
network when every station has its smallest value, both in the same unit. Each station's equation is fitted by
least squares to the delays of its neighbours in the training hours, the earlier ones. Coefficients are non-negative,
and in each equation the largest slopes may sum to ``--contraction`` at most, so that the system is a contraction: it
has a unique solution for every b.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from scipy.optimize import nnls

from cbo_gym.problems.systems.train_delay import SHAPES, network_sem
from cbo_gym.scm import Intervention, Linear, SeparableSEM, Tanh, Uniform

# Smallest slope of the linear part of every direct connection, so that all are in the network.
LEAST_SLOPE = 0.01
# Share of the training values that is winsorised at both ends of `added` and at the upper end of `total`.
WINSORISED = 0.02
# Share of the hours that are training data.
TRAINING = 0.75
QUANTILES = 21
REFITS = 40
# Weight of the row that fixes a sum in least squares.
HEAVY = 1e4

# Effect and cause.
Edge = tuple[int, int]


class Hours(NamedTuple):
    """Hourly values in minutes, NaN where a station saw no train: arrays of shape (hours, stations)."""

    hours: list[str]
    stations: list[str]
    added: np.ndarray
    total: np.ndarray


class Scaled(NamedTuple):
    """Data that the equations are fitted to: arrays of shape (hours, stations).

    ``signals`` is b in [0, 1]; ``delays`` is the winsorised total in units, with 0 where no train was seen.
    """

    signals: np.ndarray
    delays: np.ndarray
    seen: np.ndarray
    training: np.ndarray
    unit: float


class Fit(NamedTuple):
    """A fitted network: coefficient of each (effect, cause, shape), and the delays at b = 0 in units."""

    coefficients: dict[tuple[int, int, str], float]
    baseline: np.ndarray


def read_hours(path: Path) -> Hours:
    rows = _read(path, {"hr", "st", "added", "total", "n"})
    hours, stations = sorted({r["hr"] for r in rows}), sorted({r["st"] for r in rows})
    added = np.full((len(hours), len(stations)), np.nan)
    total = added.copy()
    for row in rows:
        index = hours.index(row["hr"]), stations.index(row["st"])
        added[index], total[index] = float(row["added"]), float(row["total"])
    return Hours(hours, stations, added, total)


def read_connections(path: Path, stations: list[str]) -> list[Edge]:
    rows = _read(path, {"from", "to", "count"})
    return sorted((stations.index(r["to"]), stations.index(r["from"])) for r in rows)


def _read(path: Path, columns: set[str]) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    if missing := columns - set(reader.fieldnames or []):
        raise ValueError(f"{path} must have the columns {sorted(columns)}; it lacks {sorted(missing)}")
    return rows


def scale(data: Hours) -> Scaled:
    """Winsorise, shift ``added`` to start at 0 at every station, and divide by the largest range of a station."""
    training = np.arange(len(data.hours)) < round(TRAINING * len(data.hours))
    low, high = np.nanquantile(data.added[training], [WINSORISED, 1.0 - WINSORISED])
    added = np.clip(data.added, low, high)
    total = np.minimum(data.total, np.nanquantile(data.total[training], 1.0 - WINSORISED))
    smallest, largest = np.nanmin(added[training], axis=0), np.nanmax(added[training], axis=0)
    unit = float(np.max(largest - smallest))
    # A station without trains neither adds nor reduces delay.
    signals = (np.nan_to_num(added) - smallest) / unit
    return Scaled(signals.clip(0.0, 1.0), np.nan_to_num(total) / unit, ~np.isnan(total), training, unit)


def fit(data: Scaled, edges: list[Edge], contraction: float) -> Fit:
    """Fit all equations, moving the origin of y to the solution at b = 0 until no intercept is left.

    The range of y over which slopes are bounded is that of the system itself, so it is refined along the way.
    """
    count = data.signals.shape[1]
    baseline, reach = np.zeros(count), np.full(count, 2.0)
    for _ in range(REFITS):
        y = data.delays - baseline
        fits = [_fit_station(i, data, y, edges, contraction, reach) for i in range(count)]
        coefficients = {key: value for own, _ in fits for key, value in own.items()}
        origin = intercepts = np.array([intercept for _, intercept in fits])
        for _ in range(200):
            origin = intercepts + through_edges(coefficients, origin)
        baseline = baseline + origin
        slopes = np.zeros((count, count))
        for (i, j, shape), value in coefficients.items():
            slopes[i, j] += value * SHAPES[shape].steepest(-0.1 * reach[j], reach[j])
        farthest = np.linalg.solve(np.eye(count) - slopes, data.signals[data.training].max(axis=0))
        reach = 0.5 * (reach + 1.1 * farthest)
    return Fit(coefficients, baseline)


def _fit_station(
    i: int, data: Scaled, y: np.ndarray, edges: list[Edge], contraction: float, reach: np.ndarray
) -> tuple[dict[tuple[int, int, str], float], float]:
    """Return coefficients and intercept of one equation, by least squares with non-negative, bounded slopes."""
    rows = data.training & data.seen[:, i]
    terms = [(j, shape) for effect, j in edges if effect == i for shape in SHAPES]
    target = (y - data.signals)[rows, i]
    if not terms:
        return {}, float(target.mean())
    columns = np.stack([SHAPES[shape](y[rows, j]) for j, shape in terms], axis=1)
    steepest = np.array([SHAPES[shape].steepest(-0.1 * reach[j], reach[j]) for j, shape in terms])
    minima = np.array([LEAST_SLOPE if shape == "linear" else 0.0 for _, shape in terms])
    # In units of slopes, with the unused slope as one more unknown, the bound is a fixed sum: a row of large weight.
    centred = (columns - columns.mean(axis=0)) / steepest
    residual = target - columns @ minima
    design = np.vstack([np.column_stack([centred, np.zeros(len(residual))]), np.full(len(terms) + 1, HEAVY)])
    slopes, _ = nnls(design, np.append(residual - residual.mean(), HEAVY * (contraction - minima @ steepest)))
    values = minima + slopes[:-1] / steepest
    intercept = float((target - columns @ values).mean())
    return {(i, j, shape): float(v) for (j, shape), v in zip(terms, values, strict=True) if v > 0.0}, intercept


def through_edges(coefficients: dict[tuple[int, int, str], float], y: np.ndarray) -> np.ndarray:
    """Return F(y) for y of shape (..., stations)."""
    total = np.zeros_like(y)
    for (i, j, shape), value in coefficients.items():
        total[..., i] += value * SHAPES[shape](y[..., j])
    return total


def describe(data: Hours, scaled: Scaled, fitted: Fit, edges: list[Edge]) -> dict[str, Any]:
    """Return the network in the form that the package reads."""
    probabilities = np.linspace(0.0, 1.0, QUANTILES)
    stations = []
    for i, name in enumerate(data.stations):
        own = scaled.signals[scaled.training & scaled.seen[:, i], i]
        quantiles = np.quantile(own, probabilities).round(6).tolist()
        stations.append(
            {"name": name, "baseline_minutes": _digits(fitted.baseline[i] * scaled.unit), "quantiles": quantiles}
        )
    links = []
    for i, j in edges:
        own = {shape: _digits(v) for (a, b, shape), v in fitted.coefficients.items() if (a, b) == (i, j)}
        links.append({"effect": data.stations[i], "cause": data.stations[j], "coefficients": own})
    return {"unit_minutes": _digits(scaled.unit), "stations": stations, "edges": links}


def _digits(number: float) -> float:
    return float(f"{number:.6g}")


def reconstruct(network: dict[str, Any], scaled: Scaled) -> dict[str, np.ndarray]:
    """Return the delays in minutes, shape (hours, stations), given the data of these hours."""
    sem = network_sem(network)
    baseline = np.array([station["baseline_minutes"] for station in network["stations"]])
    everything = Intervention((1.0,) * sem.action_dim)
    alone = sem.stack(sem.propagate(tuple(scaled.signals.T), everything))[:, :-1]
    y = scaled.delays - baseline / scaled.unit
    index_of = {station["name"]: i for i, station in enumerate(network["stations"])}
    coefficients = {
        (index_of[edge["effect"]], index_of[edge["cause"]], shape): value
        for edge in network["edges"]
        for shape, value in edge["coefficients"].items()
    }
    with_neighbours = through_edges(coefficients, y) + scaled.signals
    return {
        "signals alone": baseline + scaled.unit * alone,
        "signals and neighbours' delays": baseline + scaled.unit * with_neighbours,
    }


def baselines(scaled: Scaled) -> dict[str, np.ndarray]:
    """Return two predictors that use no network: each station's mean over the training hours, and its last hour."""
    minutes = np.where(scaled.seen, scaled.delays * scaled.unit, np.nan)
    mean = np.nanmean(minutes[scaled.training], axis=0)
    before = np.vstack([mean, np.where(scaled.seen, minutes, mean)[:-1]])
    return {"station's mean": np.broadcast_to(mean, minutes.shape), "hour before": before}


def errors(predicted: np.ndarray, scaled: Scaled, hours: np.ndarray) -> dict[str, float]:
    """Return root mean square and mean absolute error in minutes over the stations that saw trains in ``hours``."""
    wanted = scaled.seen & hours[:, None]
    difference = (predicted - scaled.delays * scaled.unit)[wanted]
    return {"rms": _digits(np.sqrt(np.mean(difference**2))), "mean_absolute": _digits(np.abs(difference).mean())}


def draw(scaled: Scaled, reconstructed: dict[str, np.ndarray], table: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 5.0), layout="constrained")
    observed = scaled.delays * scaled.unit
    for axes, (what, predicted) in zip(
        figure.subplots(1, 2, sharex=True, sharey=True), reconstructed.items(), strict=True
    ):
        for label, hours, colour in (
            ("training", scaled.training, "#4878a8"),
            ("held-out", ~scaled.training, "#d1495b"),
        ):
            shown = scaled.seen & hours[:, None]
            ours, mean = table[what][label]["rms"], table["station's mean"][label]["rms"]
            legend = f"{label} hours: RMS error {ours:.2f} min (station's mean: {mean:.2f})"
            axes.scatter(observed[shown], predicted[shown], s=10, alpha=0.5, color=colour, label=legend, linewidths=0)
        low, high = observed.min(), observed.max()
        axes.plot([low, high], [low, high], color="#2b3440", linewidth=1.0)
        axes.set(title=f"from {what}", xlabel="observed delay (min)", ylabel="reconstructed delay (min)")
        axes.legend(loc="upper left", fontsize=8)
    figure.savefig(path, dpi=120)


def simulate(folder: Path, hours: int = 400, seed: int = 0) -> tuple[Path, Path]:
    """Write hours of a known network of four stations, in the files' format, to ``folder``."""
    known = {(1, 0): Linear(0.5), (2, 1): Tanh(0.1, 4.0, 0.0), (0, 2): Linear(0.3), (3, 2): Linear(0.4)}
    sem = SeparableSEM([Uniform()] * 4, known, names=list("ABCD"))
    rng = np.random.default_rng(seed)
    signals = sem.draw_noise(rng, hours)
    delays = sem.stack(sem.propagate(signals, Intervention((1.0,) * 4)))
    hourly, connections = folder / "hourly.csv", folder / "connections.csv"
    with hourly.open("w", encoding="utf-8") as file:
        file.write("hr,st,added,total,n\n")
        for hour in range(hours):
            for i, name in enumerate("ABCD"):
                file.write(f"{hour:05d},{name},{10.0 * signals[i][hour] - 3.0},{10.0 * delays[hour, i]},1\n")
    pairs = "".join(f"{'ABCD'[cause]},{'ABCD'[effect]},9\n" for effect, cause in known)
    connections.write_text(f"from,to,count\n{pairs}", encoding="utf-8")
    return hourly, connections


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hourly", type=Path, nargs="?")
    parser.add_argument("connections", type=Path, nargs="?")
    parser.add_argument("--contraction", type=float, default=0.8, help="bound of the slopes of each equation, below 1")
    parser.add_argument("--out", type=Path, help="write the coefficients to this YAML file")
    parser.add_argument("--figure", type=Path, help="draw reconstructed against observed delays to this file")
    parser.add_argument("--quick", action="store_true", help="fit simulated hours instead of files")
    options = parser.parse_args()
    if not options.quick and options.connections is None:
        parser.error("give the two CSV files, or --quick")
    if not 0.0 < options.contraction < 1.0:
        parser.error(f"--contraction must be above 0 and below 1; given {options.contraction}")
    with tempfile.TemporaryDirectory() as folder:
        paths = simulate(Path(folder)) if options.quick else (options.hourly, options.connections)
        data = read_hours(paths[0])
        edges = read_connections(paths[1], data.stations)
    scaled = scale(data)
    network = describe(data, scaled, fit(scaled, edges, options.contraction), edges)
    reconstructed = reconstruct(network, scaled)
    table = {
        what: {"training": errors(p, scaled, scaled.training), "held-out": errors(p, scaled, ~scaled.training)}
        for what, p in {**reconstructed, **baselines(scaled)}.items()
    }
    rate = network_sem(network).contraction
    print(f"{len(edges)} edges, {len(data.hours)} hours, contraction rate at most {rate:.3f}; errors in minutes:")
    for what, by_hours in table.items():
        print(
            f"  {what:32}",
            *(f"{h}: RMS {e['rms']:.3f}, absolute {e['mean_absolute']:.3f} " for h, e in by_hours.items()),
        )
    if options.out:
        header = (
            "# Written by examples/fit_train_delay.py; SHAPES in train_delay.py are what the coefficients multiply.\n"
        )
        network = {**network, "errors_minutes": table}
        options.out.write_text(header + yaml.safe_dump(network, sort_keys=False, default_flow_style=None, width=110))
    if options.figure:
        draw(scaled, reconstructed, table, options.figure)


if __name__ == "__main__":
    main()
