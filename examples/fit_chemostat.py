"""Fit the chemostat's daily map to experiment C1 of Blasius et al. (2020), Nature 577, and forecast the rest of it.

The data are free (CC BY 4.0): figshare, doi 10.6084/m9.figshare.10045976.v1; the file of experiment C1 has the columns
time (days), algae (10^6 cells/ml), rotifers (animals/ml), egg-ratio, eggs (per ml), dead animals (per ml), external
medium (mu mol N / l), of which the egg-ratio is not needed. The first three quarters of the days are fitted, the last
quarter is held out.

Writes chemostat.yaml (for the environment: CBO/Chemostat-v0 with coefficients='path/of/chemostat.yaml') and
chemostat.png, forecasts of every day from the measurements of the day before, with their errors.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import yaml
from matplotlib.figure import Figure
from scipy.optimize import least_squares
from scipy.stats import qmc

from cbo_gym.agents.networks.exogenous import fit_mixture
from cbo_gym.problems.systems import chemostat as model
from cbo_gym.problems.systems.chemostat import (
    Coefficients,
    Day,
    ForecastErrors,
    Mixture,
    Rates,
    Scales,
    load_coefficients,
)
from cbo_gym.scm import GaussianMixture, Intervention

SOURCE = "Blasius et al. (2020), Nature 577, experiment C1; doi 10.6084/m9.figshare.10045976.v1, CC BY 4.0"
COLUMNS = ("time", "algae", "rotifers", "eggs", "dead animals", "external medium")
# umol N/l in 10^6 cells/ml, at 28e-9 umol N a cell.
ALGAE_NITROGEN = 28.0
# Intervals between measurements that count as a day.
DAY = (0.65, 1.35)
TRAINING_SHARE = 0.75
# Number of steps of the integration of dissolved nitrogen.
STEPS_A_DAY = 100
NODES = ("N", "P", "J", "A", "E", "D")
LABELS = {
    "N": "dissolved nitrogen N\n(µmol N/l, reconstructed)",
    "P": "algae P (µmol N/l)",
    "J": "juveniles J (1/ml)",
    "A": "adults A (1/ml)",
    "E": "eggs E (1/ml)",
    "D": "dead animals D (1/ml)",
}
# Number of quasi-random draws of the noise of a day.
DRAWS = 2**11
# Length of a block, and number of resamples, of the block bootstrap.
BLOCK_DAYS, RESAMPLES = 7, 2000

# Node, "time" or "N_in" -> a value for each day.
Days = dict[str, np.ndarray]

Forecast = Callable[[np.ndarray, Days, Days], np.ndarray]

#: node -> its mechanism without noise, given its factors, yesterday and today
MECHANISMS: dict[str, Forecast] = {
    "N": lambda s, old, new: model.nitrogen(*s, old["N"], old["P"], new["N_in"], 0.0),
    "P": lambda s, old, new: model.algae(*s, old["P"], new["N"], 0.0),
    "J": lambda s, old, new: model.juveniles(*s, new["P"], old["J"], old["A"], 0.0),
    "A": lambda s, old, new: model.adults(*s, new["P"], old["A"], 0.0),
    "E": lambda s, old, new: model.eggs(*s, old["E"], new["P"], new["A"], 0.0),
    "D": lambda s, old, new: model.dead(*s, old["D"], new["J"], new["A"], 0.0),
}


def read_table(path: Path) -> dict[str, np.ndarray]:
    """Return the columns of the data file by the names in ``COLUMNS``, with rows in the order of time."""
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    names = [next((name for name in COLUMNS if title.strip().startswith(name)), "") for title in header]
    if missing := [name for name in COLUMNS if name not in names]:
        raise SystemExit(f"{path} has no column {missing}; it has {[title.strip() for title in header]}")
    table = np.array(rows, dtype=float)
    table = table[table[:, names.index("time")].argsort()]
    return {name: table[:, names.index(name)] for name in COLUMNS}


def dissolved_nitrogen(time: np.ndarray, algae: np.ndarray, external: np.ndarray) -> np.ndarray:
    """Return dissolved nitrogen, which was not measured: dN = delta (N_in - N) - F_P(N) P along the measured algae.

    Algae are interpolated between measurements. The equation forgets its start, N = N_in, within a few days.
    """
    values = [external[0]]
    for i in range(1, len(time)):
        steps = max(1, round((time[i] - time[i - 1]) * STEPS_A_DAY))
        length, level = (time[i] - time[i - 1]) / steps, values[-1]
        for between in np.linspace(algae[i - 1], algae[i], steps):
            loss = model.DILUTION + model.ALGAE_UPTAKE * between / (model.ALGAE_HALF + level)
            balance = model.DILUTION * external[i] / loss
            level = balance + (level - balance) * np.exp(-loss * length)
        values.append(level)
    return np.array(values)


def to_nodes(table: dict[str, np.ndarray]) -> Days:
    """Return the nodes of the daily map from the second measurement on.

    Rotifers were counted whole: juveniles are those that hatched from the eggs of the measurement before, and the rest
    are adults. Where that leaves none, the counts contradict each other, and the measurement is left out.
    """
    algae = ALGAE_NITROGEN * table["algae"]
    young = model.HATCHED * table["eggs"][:-1]
    days = {
        "time": table["time"][1:],
        "N_in": table["external medium"][1:],
        "N": dissolved_nitrogen(table["time"], algae, table["external medium"])[1:],
        "P": algae[1:],
        "J": young,
        "A": table["rotifers"][1:] - young,
        "E": table["eggs"][1:],
        "D": table["dead animals"][1:],
    }
    return take(days, np.flatnonzero(days["A"] > 0.0))


def take(days: Days, rows: np.ndarray) -> Days:
    return {name: values[rows] for name, values in days.items()}


def consecutive(days: Days) -> tuple[Days, Days]:
    """Return the pairs of yesterday and today: neighbouring measurements about a day apart."""
    gap = np.diff(days["time"])
    first = np.flatnonzero((gap >= DAY[0]) & (gap <= DAY[1]))
    return take(days, first), take(days, first + 1)


def residuals(node: str, factors: np.ndarray, old: Days, new: Days) -> np.ndarray:
    """Return the residuals of the square root of a node, computed from the measured parents."""
    return np.sqrt(new[node]) - np.sqrt(MECHANISMS[node](factors, old, new))


def fit_factors(old: Days, new: Days) -> dict[str, np.ndarray]:
    """Return the factors of each node that minimise the squares of :func:`residuals`."""
    factors = {}
    for node in NODES:
        start = np.zeros(1 if node == "N" else 2)
        fitted = least_squares(lambda logs, node=node: residuals(node, np.exp(logs), old, new), start)
        factors[node] = np.exp(fitted.x)
    return factors


def as_scales(factors: dict[str, np.ndarray]) -> Scales:
    (uptake,), *others = ([round_to_six_digits(factor) for factor in factors[node]] for node in NODES)
    return Scales(
        N=uptake, **{node: Rates(gain=gain, loss=loss) for node, (gain, loss) in zip(NODES[1:], others, strict=True)}
    )


def forecast(scales: Scales, noise: dict[str, GaussianMixture], old: Days, new: Days) -> Days:
    """Draw one-day-ahead forecasts of every node from yesterday's measurements and today's N_in, ``(days, DRAWS)``."""
    column = {name: values[:, None] for name, values in old.items()}
    scm = model.daily_map(scales, column, noise)
    actions = Intervention([new["N_in"][:, None], column["J"], column["A"]])
    uniforms = qmc.Sobol(len(scm.noisy), rng=np.random.default_rng(0)).random(DRAWS)
    values = scm.propagate(scm.noise_from_uniform(uniforms.T), actions)
    shape = (len(new["time"]), DRAWS)
    return {node: np.broadcast_to(-values["Y"] if node == "D" else values[node], shape) for node in NODES}


def rmse(errors: np.ndarray) -> np.ndarray:
    """Return the root mean square along the last axis."""
    return np.sqrt(np.mean(np.square(errors), axis=-1))


def error_table(draws: Days, old: Days, new: Days, typical: Days) -> pl.DataFrame:
    """Return the root mean squared errors on ``new``, with a row for each node.

    Of the forecast (the mean of its draws), of "as yesterday" and of the mean of the training days, in native units.
    ``ratio`` is the forecast's to yesterday's; its 95 % interval comes from a bootstrap over blocks of a week.
    """
    count = len(new["time"])
    starts = np.random.default_rng(0).integers(0, count - BLOCK_DAYS + 1, (RESAMPLES, count // BLOCK_DAYS))
    resampled = (starts[..., None] + np.arange(BLOCK_DAYS)).reshape(RESAMPLES, -1)
    rows = []
    for node in NODES:
        ours, yesterdays = draws[node].mean(axis=1) - new[node], old[node] - new[node]
        low, high = np.quantile(rmse(ours[resampled]) / rmse(yesterdays[resampled]), [0.025, 0.975])
        errors = {
            "forecast": rmse(ours),
            "persistence": rmse(yesterdays),
            "training_mean": rmse(typical[node].mean() - new[node]),
            "ratio": rmse(ours) / rmse(yesterdays),
            "ratio_low": low,
            "ratio_high": high,
        }
        rows.append({"node": node} | {name: float(value) for name, value in errors.items()})
    return pl.DataFrame(rows)


def draw(days: Days, new: Days, draws: Days, held_out_from: float, errors: pl.DataFrame) -> Figure:
    """Draw the measurements and one-day-ahead forecasts of all nodes, with the held-out days shaded."""
    figure = Figure(figsize=(13, 15), layout="constrained")
    for axis, node, row in zip(
        figure.subplots(len(NODES), 1, sharex=True), NODES, errors.iter_rows(named=True), strict=True
    ):
        shown = np.full((3, len(days["time"])), np.nan)  # gaps where no measurement was a day before
        shown[:, np.searchsorted(days["time"], new["time"])] = [
            draws[node].mean(axis=1),
            *np.quantile(draws[node], [0.1, 0.9], axis=1),
        ]
        mean, low, high = shown
        axis.fill_between(days["time"], low, high, alpha=0.25, color="C0", linewidth=0, label="80 % of the forecast")
        axis.plot(days["time"], mean, color="C0", linewidth=1, label="mean of the forecast")
        axis.plot(days["time"], days[node], ".", color="black", markersize=3, label="measured")
        axis.axvspan(held_out_from, days["time"][-1], color="C1", alpha=0.12, linewidth=0, label="held out")
        axis.set(ylabel=LABELS[node], xlim=(days["time"][0], days["time"][-1]))
        axis.set_yscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0.0)), np.square))
        axis.set_ylim(bottom=0.0)
        axis.set_title(
            f"{node}: RMSE on the held-out days {row['forecast']:.2f}; as yesterday {row['persistence']:.2f} "
            f"(ratio {row['ratio']:.2f}, {row['ratio_low']:.2f} to {row['ratio_high']:.2f}), "
            f"training mean {row['training_mean']:.2f}",
            fontsize=9,
        )
    axis.set_xlabel("day")
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    figure.suptitle("Chemostat C1: every day forecast from the measurements of the day before")
    return figure


def simulate(path: Path, days: int = 300) -> None:
    """Write a table in the data's format, simulated with the recorded coefficients."""
    fitted = load_coefficients()
    noise = fitted.noise.distributions()
    rng = np.random.default_rng(0)
    state = dict(fitted.yesterday)
    rows = [",".join(COLUMNS)]
    for day in range(days):
        scm = model.daily_map(fitted.scales, state, noise)
        values = scm.propagate(scm.draw_noise(rng, ()), Intervention([fitted.yesterday.N_in, state["J"], state["A"]]))
        state = {node: float(-values["Y"] if node == "D" else values[node]) for node in NODES}
        animals = state["J"] + state["A"]
        row = [day, state["P"] / ALGAE_NITROGEN, animals, state["E"], state["D"], fitted.yesterday.N_in]
        rows.append(",".join(f"{value:.6g}" for value in row))
    path.write_text("\n".join(rows) + "\n")


def round_to_six_digits(value: float) -> float:
    """Round to six significant digits."""
    return float(f"{value:.6g}")


def to_mixture(fitted: GaussianMixture) -> Mixture:
    means, stds = map(round_to_six_digits, fitted.means), map(round_to_six_digits, fitted.stds)
    return Mixture(weights=list(fitted.weights), means=list(means), stds=list(stds))


def fit(path: Path, source: str, components: int | str) -> tuple[Coefficients, Figure, pl.DataFrame]:
    """Return the coefficients, the figure and the table of errors of a data file."""
    days = to_nodes(read_table(path))
    old, new = consecutive(days)
    split = days["time"][0] + TRAINING_SHARE * (days["time"][-1] - days["time"][0])
    training, held_out = np.flatnonzero(new["time"] < split), np.flatnonzero(old["time"] >= split)
    pairs = take(old, training), take(new, training)
    factors = fit_factors(*pairs)
    noise = {node: fit_mixture(residuals(node, factors[node], *pairs), components, seed=0) for node in NODES}
    scales = as_scales(factors)
    draws = forecast(scales, noise, old, new)
    errors = error_table(take(draws, held_out), take(old, held_out), take(new, held_out), take(new, training))
    coefficients = Coefficients(
        source=source,
        fitted_with="examples/fit_chemostat.py",
        training_days=(float(days["time"][0]), round_to_six_digits(split)),
        held_out_days=(round_to_six_digits(split), float(days["time"][-1])),
        pairs={"training": len(training), "held_out": len(held_out)},
        yesterday=Day(**{name: round_to_six_digits(np.median(new[name][training])) for name in ("N_in", *NODES)}),
        scales=scales,
        noise=ForecastErrors(**{node: to_mixture(mixture) for node, mixture in noise.items()}),
        errors={row.pop("node"): {k: round_to_six_digits(v) for k, v in row.items()} for row in errors.to_dicts()},
    )
    return coefficients, draw(days, new, draws, split, errors), errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="CSV file of experiment C1")
    parser.add_argument("--quick", action="store_true", help="fit a simulated table instead, to see the script run")
    parser.add_argument("--out", type=Path, default=Path("runs/chemostat"), help="folder of the two files")
    parser.add_argument("--components", default="bic", help="of each mixture: a number, or bic to choose from 1 to 4")
    arguments = parser.parse_args()
    if (arguments.data is None) != arguments.quick:
        parser.error("give the data file, or --quick for a simulated one")

    out, source = arguments.out, SOURCE
    out.mkdir(parents=True, exist_ok=True)
    data = arguments.data
    if arguments.quick:
        data, source = out / "simulated.csv", "simulated with the recorded coefficients"
        simulate(data)
    coefficients, figure, errors = fit(data, source, arguments.components)
    content = yaml.safe_dump(coefficients.model_dump(mode="json"), sort_keys=False, default_flow_style=None, width=100)
    (out / "chemostat.yaml").write_text(content)
    figure.savefig(out / "chemostat.png", dpi=80)
    print(coefficients.scales)
    with pl.Config(tbl_cols=-1, tbl_hide_dataframe_shape=True, tbl_width_chars=200, float_precision=3):
        print(errors)
    print(f"chemostat.yaml and chemostat.png are in {out}")


if __name__ == "__main__":
    main()
