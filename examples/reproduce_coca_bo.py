"""The experiments of Arsenyan, Grosnit, Bou-Ammar & Dalalyan, Contextual causal Bayesian optimisation.

Writes figures after the paper's Fig. 3, 7, 8 and 9 and a table of regrets to a folder. Runs that the folder already
has are not repeated, so a reproduction that was stopped continues. The paper has 110 seeds and 700 rounds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from shared.progress import run_with_progress

from cbo_gym.evaluation import Run
from cbo_gym.evaluation.metrics.aggregate import half_width
from cbo_gym.evaluation.play.sweep import plan
from cbo_gym.evaluation.report.palette import line_styles
from cbo_gym.evaluation.report.plots import (
    frequency_curves,
    mean_curve,
    publication_style,
    round_axis,
    save,
    scale_to_lines,
)

ALIGNED = "CBO/CoCaAligned-v0"
WARPED, BOTORCH = "CoCaBO(backend='warped')", "CoCaBO(backend='botorch')"
BLIND = "CoCaBO(use_contexts=False)"
ROUNDS, LONG = 300, {"CBO/PSAContextual2-v0": 700}
# Two arms have eight random plays each, and the rest are chosen by the method.
QUICK_ROUNDS = 20
QUICK_FIGURES = ["fig3", "fig9"]
NOISES = (0.01, 0.05, 0.25, 1.25, 6.25)


@dataclass(frozen=True)
class Panel:
    """One comparison: lines (label -> agent and environment), and the agents whose choices of scopes are shown."""

    title: str
    lines: Mapping[str, tuple[str, str]]
    choices_of: str | None = None


def agents_on(env: str, *agents: str) -> dict[str, tuple[str, str]]:
    return {agent: (agent, env) for agent in agents}


FIGURES = {
    "fig3": (
        Panel("(a) PSAContextual1", agents_on("CBO/PSAContextual1-v0", "CaBO", "CoCaBO"), "CaBO"),
        Panel("(b) PSAContextual2", agents_on("CBO/PSAContextual2-v0", "CaBO", "CoCaBO"), "CaBO"),
        Panel("(c) CoCaAligned", agents_on(ALIGNED, "CoBO", "CoCaBO"), "CoCaBO"),
        Panel("(d) CoCaFig1", agents_on("CBO/CoCaFig1-v0", "CoBO", "CoCaBO", "CaBO"), "CoCaBO"),
    ),
    "fig7": (
        Panel(
            "CoCaBO on CoCaAligned, by the noise of Y",
            {f"std {std}": ("CoCaBO", f"CBO/CoCaAligned-v0(noise_y={std})") for std in NOISES},
        ),
    ),
    "fig8": (Panel("CoCaLarge", agents_on("CBO/CoCaLarge-v0", "CoBO", "CoCaBO"), "CoCaBO"),),
    "fig9": (
        Panel(
            "(a) Backends",
            {
                "Matern 5/2": ("CoCaBO", ALIGNED),
                "BoTorch's default": (BOTORCH, ALIGNED),
                "after HEBO": (WARPED, ALIGNED),
            },
        ),
        Panel("(b) Contexts", {"preserved": ("CoCaBO", ALIGNED), "discarded": (BLIND, ALIGNED)}),
    ),
}

Runs = Callable[[str, str], list[Run]]


def run_all(figures: Sequence[str], seeds: int, rounds: int | None, folder: Path, jobs: int) -> list[Run]:
    """Play the runs that the folder lacks, and return all runs of the figures; ``rounds`` is None for the defaults."""
    pairs = {pair for name in figures for panel in FIGURES[name] for pair in panel.lines.values()}
    planned = [
        job
        for agent, env in sorted(pairs)
        for job in plan([agent], [env], range(seeds), folder, rounds or LONG.get(env, ROUNDS))
    ]
    return run_with_progress(planned, jobs)


@publication_style
def draw(panels: Sequence[Panel], runs_of: Runs) -> Figure:
    """Draw a column for each panel: the frequency of each scope so far, and below it the average of mu* - y."""
    rows = 2 if any(panel.choices_of for panel in panels) else 1
    figure = Figure(figsize=(max(3.5, 2.7 * len(panels)), 2.9 * rows), layout="constrained")
    axes = figure.subplots(rows, len(panels), squeeze=False)
    for column, panel in zip(axes.T, panels, strict=True):
        if panel.choices_of:
            runs = runs_of(*panel.lines[panel.choices_of])
            frequency_curves(column[0], runs)
            column[0].set_title(f"{panel.title}:\nchoices of {panel.choices_of}")
            legend_below(column[0])
        elif rows == 2:
            column[0].axis("off")
        draw_regret(column[-1], panel, runs_of)
    return figure


def draw_regret(axis: Axes, panel: Panel, runs_of: Runs) -> None:
    styles = line_styles(panel.lines)
    for label, pair in panel.lines.items():
        if runs := runs_of(*pair):
            curves = np.stack([run.table["average_pseudo_regret"].to_numpy() for run in runs])
            mean_curve(axis, curves, label, styles[label])
    tell_apart(axis)
    scale_to_lines(axis)
    axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
    axis.set(ylabel="Average of $\\mu^* - y$\nover rounds 1 to $t$", title=panel.title)
    round_axis(axis)
    legend_below(axis, 2)


def legend_below(axis: Axes, columns: int = 1) -> None:
    """Put the legend of one panel below its axis."""
    from matplotlib.transforms import ScaledTranslation

    figure = axis.get_figure(root=True)
    assert figure is not None
    below = axis.transAxes + ScaledTranslation(0, -0.42, figure.dpi_scale_trans)  # inches of ticks and title
    axis.legend(loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=below, borderaxespad=0, ncols=columns)


def tell_apart(axis: Axes) -> None:
    """Make lines visible that coincide in a tenth of the rounds or more: later lines are drawn thinner.

    Agents that play alike at first meet the same noise and earn the same.
    """
    heights = [np.asarray(line.get_ydata()) for line in axis.lines]
    if any(np.isclose(first, second).mean() >= 0.1 for first, second in combinations(heights, 2)):
        for index, line in enumerate(reversed(axis.lines)):
            line.set_linewidth(1.2 + 1.8 * index)


def table_of(figures: Sequence[str], runs_of: Runs) -> pl.DataFrame:
    """Return mean regrets over the last third of the rounds, with half their 95 % interval (null for one seed)."""
    rows = []
    for name in figures:
        for panel in FIGURES[name]:
            for label, pair in panel.lines.items():
                runs = runs_of(*pair)
                row = {"figure": name, "panel": panel.title, "line": label, "seeds": len(runs)}
                for column in ("pseudo_regret", "instant_regret", "context_regret") if runs else ():
                    last = np.array([run.table[column].tail(-(-run.table.height // 3)).mean() for run in runs])
                    half = float(half_width(last))
                    row |= {column: last.mean(), f"{column}_half": None if np.isnan(half) else half}
                rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one seed, 20 rounds, two figures: to see that all works")
    parser.add_argument("--seeds", type=int, help="number of seeds, counted from 0 (10)")
    parser.add_argument("--rounds", type=int, help="rounds of a run (300, on PSAContextual2 700)")
    parser.add_argument("--out", type=Path, help="folder of runs, figures and table (runs/coca_bo)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes at a time; -1 for one a core")
    parser.add_argument("--figures", nargs="+", choices=list(FIGURES), help="all; with --quick fig3 and fig9")
    arguments = parser.parse_args()
    figures = arguments.figures or (QUICK_FIGURES if arguments.quick else list(FIGURES))
    seeds = arguments.seeds or (1 if arguments.quick else 10)
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else None)
    # Starting processes would take longer than a quick run.
    jobs = 1 if arguments.quick else arguments.jobs
    folder = arguments.out or Path("runs/coca_bo-quick" if arguments.quick else "runs/coca_bo")

    runs = run_all(figures, seeds, rounds, folder, jobs)

    def runs_of(agent: str, env: str) -> list[Run]:
        return [run for run in runs if (run.agent, run.env, run.status) == (agent, env, "finished")]

    for name in figures:
        save(draw(FIGURES[name], runs_of), folder, name)
    table = table_of(figures, runs_of)
    table.write_csv(folder / "regrets.csv")
    with pl.Config(tbl_rows=-1, tbl_width_chars=120, fmt_str_lengths=45, tbl_hide_dataframe_shape=True):
        print(table.select("figure", "panel", "line", "seeds", "pseudo_regret", "context_regret"))
    failed = [run for run in runs if run.status == "failed"]
    for run in failed:
        print(f"failed: {run.agent} on {run.env}, seed {run.seed}: {run.error.strip().splitlines()[-1]}")
    print(f"Figures and regrets.csv are in {folder}.")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
