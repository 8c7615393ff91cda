"""The figures and tables of the EXCBO paper: systems whose noise has several modes.

Ren, Wang, Chen and Qian, "Causal Bayesian optimization via exogenous distribution learning", sec. 7 and 11. Runs that
the folder already has are not repeated, so a reproduction that was stopped continues. Three of the systems are
this package's reading of the paper: it leaves open the mixtures of the noise, the pooled test, and the fit of the
chemostat (see envs_registry.yaml). The figures show the best expected reward of the actions played so far.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from shared.progress import run_with_progress

from cbo_gym.evaluation import Run
from cbo_gym.evaluation.comparison.parameter_choice import read_chosen
from cbo_gym.evaluation.metrics.aggregate import half_width
from cbo_gym.evaluation.play.sweep import plan
from cbo_gym.evaluation.report.palette import line_styles
from cbo_gym.evaluation.report.plots import (
    mean_curve,
    publication_style,
    round_axis,
    save,
    scale_to_lines,
    shared_legend,
)

# On Alpine2 the paper leaves MCBO out because of its cost.
WITHOUT_MCBO = ("GP-UCB", "EICF", "EXCBO")
ALL = (*WITHOUT_MCBO, "MCBO")
CHOSEN_BETA = Path(__file__).with_name("chosen_beta.yaml")
COMPONENTS = {f"EXCBO(components={count})": f"EXCBO, k={count}" for count in (2, 3, 4)}
TABLE_ROUNDS = (20, 40, 60, 80, 100)


@dataclass(frozen=True)
class Panel:
    """A panel of a figure: a task and its agents."""

    title: str
    task: str
    agents: tuple[str, ...]


def _dropwave(scale: float, std: float, agents: tuple[str, ...] = ALL) -> Panel:
    task = f"CBO/Dropwave-GMM-v0(noise_scale={scale}, noise_std={std})"
    return Panel(rf"Dropwave-GMM, $\lambda$={scale}, $\sigma$={std}", task, agents)


def _alpine2(scale: float, std: float, agents: tuple[str, ...] = WITHOUT_MCBO) -> Panel:
    task = f"CBO/Alpine2-DGM-v0(noise_scale={scale}, noise_std={std})"
    return Panel(rf"Alpine2-DGM, $\lambda$={scale}, $\sigma$={std}", task, agents)


def _gaussian(name: str, task: str) -> Panel:
    """Return EXCBO and MCBO with the beta chosen for its best reward, because the paper quotes a tuned MCBO."""
    beta = read_chosen(CHOSEN_BETA, "MCBO", "beta", "best")[task]
    return Panel(f"{name}, Gaussian noise", task, ("EXCBO", f"MCBO(beta={beta!r})"))


def _at_each_level(name: str, levels: tuple[float, ...], agents: tuple[str, ...]) -> tuple[Panel, ...]:
    return tuple(Panel(rf"{name}, $\sigma$={std}", f"CBO/{name}(noise_std={std})", agents) for std in levels)


def _with_components(*counts: int) -> tuple[str, ...]:
    return ("GP-UCB", "EICF", *(f"EXCBO(components={count})" for count in counts))


FIGURES = {
    "4": tuple(_dropwave(scale, std) for std in (0.1, 0.3) for scale in (1.0, 2.0, 3.0)),
    "5": tuple(_alpine2(scale, std) for scale in (0.3, 1.0) for std in (0.05, 0.2, 0.4)),
    "6": _at_each_level("Epidemic-v1", (0.1, 0.3), ALL),
    "7": (
        Panel("Chemostat (P3C2), a day", "CBO/Chemostat-v0", ALL),
        Panel("Chemostat (P3C2), five days", "CBO/Chemostat-v1", ALL),
    ),
    "10": _at_each_level("Alpine2-NonDGM-v0", (0.05, 0.1, 0.2), WITHOUT_MCBO),
    "12": _at_each_level("PooledTesting-v0", (0.2, 0.4), ALL),
    "13": (
        Panel("Dropwave, three modes", "CBO/Dropwave-GMM3-v0", _with_components(3, 4)),
        Panel("Alpine2-DGM, three modes", "CBO/Alpine2-DGM3-v0", _with_components(3)),
        Panel("Alpine2-NonDGM, three modes", "CBO/Alpine2-NonDGM3-v0", _with_components(3)),
    ),
    "14": (
        _dropwave(1.0, 0.1, tuple(COMPONENTS)),
        # With the paper's lambda of 2 the expectation is dominated by rare, huge rewards.
        _alpine2(1.0, 0.05, tuple(COMPONENTS)),
        Panel("Chemostat (P3C2)", "CBO/Chemostat-v0", tuple(COMPONENTS)),
    ),
    "tables2-3": (
        _gaussian("Dropwave", "CBO/Dropwave-NoisyPublished-v0"),
        _gaussian("Alpine2", "CBO/Alpine2-Noisy-v0"),
    ),
    "table1": (_dropwave(1.0, 0.1),),  # running time
}


def best_rewards(run: Run) -> np.ndarray:
    """Return the best expected reward of the actions played so far, after every round."""
    return np.maximum.accumulate(run.table["expected_reward"].to_numpy())


def run_all(panels: list[Panel], seeds: int, rounds: int | None, folder: Path, jobs: int) -> list[Run]:
    """Play the runs that the folder lacks, and return all runs of the panels."""
    planned = [job for panel in panels for job in plan(panel.agents, [panel.task], range(seeds), folder, rounds)]
    return run_with_progress(list(dict.fromkeys(planned)), jobs)


def finished_runs(runs: list[Run], agent: str, task: str) -> list[Run]:
    return [run for run in runs if (run.agent, run.env, run.status) == (agent, task, "finished")]


@publication_style
def draw(panels: tuple[Panel, ...], runs: list[Run]) -> Figure:
    """Draw the mean over seeds of every agent with its interval, in a panel for each task."""
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(max(3.5, 2.4 * columns), 2.1 * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    styles = line_styles(agent for panel in panels for agent in panel.agents)
    for axis, panel in zip(axes.flat, panels, strict=True):
        for agent in panel.agents:
            if played := finished_runs(runs, agent, panel.task):
                curves = np.stack([best_rewards(run) for run in played])
                mean_curve(axis, curves, COMPONENTS.get(agent, agent), styles[agent])
        scale_to_lines(axis)
        axis.set_title(panel.title)
        round_axis(axis)
    for axis in axes[:-1].flat:
        axis.set_xlabel("")
    for axis in axes[:, 0]:
        axis.set_ylabel("Best expected reward so far")
    shared_legend(figure)
    return figure


def reward_table(figures: list[str], runs: list[Run]) -> pl.DataFrame:
    """Return the best expected reward at some rounds with half its 95 % interval, by panel and agent."""
    rows = []
    for name in figures:
        for panel in FIGURES[name]:
            for agent in panel.agents:
                if played := finished_runs(runs, agent, panel.task):
                    curves = np.stack([best_rewards(run) for run in played])
                    row = {"figure": name, "task": panel.task, "agent": agent, "seeds": len(played)}
                    for number in sorted({*TABLE_ROUNDS, curves.shape[1]}):
                        if number <= curves.shape[1]:
                            half = float(half_width(curves[:, number - 1]))
                            row[f"round {number}"] = float(curves[:, number - 1].mean())
                            row[f"+- {number}"] = None if np.isnan(half) else half
                    rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def time_table(runs: list[Run]) -> pl.DataFrame:
    """Return seconds a round, with recommendations, on the task of the paper's Table 1, and ratios to GP-UCB's."""
    (panel,) = FIGURES["table1"]
    seconds = {
        agent: np.mean([run.seconds_a_round for run in played])
        for agent in panel.agents
        if (played := finished_runs(runs, agent, panel.task))
    }
    rows = [
        {"agent": agent, "seconds a round": mean, "ratio to GP-UCB": mean / seconds["GP-UCB"]}
        for agent, mean in seconds.items()
    ]
    return pl.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="one seed and 2 rounds of one panel, to see that all works"
    )
    parser.add_argument("--figures", nargs="+", choices=list(FIGURES), help="all by default")
    parser.add_argument("--seeds", type=int, help="number of seeds, counted from 0 (8; the paper has 4)")
    parser.add_argument("--rounds", type=int, help="rounds of a run (the registered number, 100)")
    parser.add_argument("--out", type=Path, help="folder of runs, figures and tables (runs/excbo)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes at a time; -1 for one a core, 1 to time")
    arguments = parser.parse_args()
    names = arguments.figures or (["table1"] if arguments.quick else list(FIGURES))
    seeds = arguments.seeds or (1 if arguments.quick else 8)
    rounds = arguments.rounds or (2 if arguments.quick else None)
    # Starting processes would take longer than a quick run.
    jobs = 1 if arguments.quick else arguments.jobs
    folder = arguments.out or Path("runs/excbo-quick" if arguments.quick else "runs/excbo")

    runs = run_all([panel for name in names for panel in FIGURES[name]], seeds, rounds, folder, jobs)
    table = reward_table(names, runs)
    table.write_csv(folder / "best_rewards.csv")
    for name in names:
        save(draw(FIGURES[name], runs), folder, f"figure{name}" if name.isdigit() else name)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=170, fmt_str_lengths=60, tbl_hide_dataframe_shape=True):
        # Only the intervals of the last round, because the others do not fit a line; the file has all.
        print(table.select(name for name in table.columns if not name.startswith("+-") or name == table.columns[-1]))
        if "table1" in names:
            times = time_table(runs)
            times.write_csv(folder / "running_time.csv")
            print(times)
    for run in runs:
        if run.status == "failed":
            print(f"failed: {run.agent} on {run.env}, seed {run.seed}: {run.error.strip().splitlines()[-1]}")
    print(f"Figures and tables are in {folder}.")
    sys.exit(any(run.status == "failed" for run in runs))


if __name__ == "__main__":
    main()
