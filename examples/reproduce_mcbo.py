"""Average and best reward on the nine tasks of the MCBO paper, as in its Figures 2, 4 and 6.

Sussex, Makarova and Krause (2023), "Model-based causal Bayesian optimization", sec. 5 and A.4. Runs that the
folder already has are not repeated, so a reproduction that was stopped continues.

GP-UCB and MCBO play each task with the beta that did best on the eight others, by the metric of the figure:
chosen_beta.yaml. "MCBO, default" is our MCBO without tuning, the same for both figures. To choose again, play
'GP-UCB(beta=0.05)', 'GP-UCB(beta=0.5)', 'GP-UCB(beta=5)' and the same of MCBO on all tasks and seeds that may choose,
cbo_gym.sweep(agent, TASKS, range(100, 103), "runs/betas"), and record the four choices (GP-UCB and MCBO, average_score
and best):

    cbo-gym choose runs/betas --agent MCBO --parameter beta --metric best --write examples/chosen_beta.yaml
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
from cbo_gym.evaluation.report.palette import LineStyle, line_styles
from cbo_gym.evaluation.report.plots import (
    mean_curve,
    publication_style,
    round_axis,
    save,
    scale_to_lines,
    shared_legend,
)

TASKS = {
    "CBO/ToyGraph-v0": "ToyGraph",
    "CBO/PSAGraph-v0": "PSAGraph",
    "CBO/Ackley-v0": "Ackley",
    "CBO/Dropwave-v0": "Dropwave",
    "CBO/Alpine2-v0": "Alpine2",
    "CBO/Rosenbrock-v0": "Rosenbrock",
    "CBO/Dropwave-NoisyPublished-v0": "Dropwave, noisy",
    "CBO/Alpine2-Noisy-v0": "Alpine2, noisy",
    "CBO/Rosenbrock-Noisy-v0": "Rosenbrock, noisy",
}
# Rewards from -10,000 to 0, drawn on an axis that is logarithmic below -1
LOGARITHMIC = ("CBO/Rosenbrock-v0", "CBO/Rosenbrock-Noisy-v0")
METHODS = ("Random", "GP-UCB", "EIFN", "MCBO", "MCBO, default", "CBO")
QUICK_METHODS = ("Random", "MCBO, default")
TUNED = ("GP-UCB", "MCBO")
UNTUNED = {"MCBO, default": "MCBO"}
STYLES = line_styles(["Random", "GP-UCB", "EIFN", "MCBO", "MCBO(tuned)", "CBO"])
DEFAULT_BETA = 0.5
CHOSEN_BETA = Path(__file__).with_name("chosen_beta.yaml")

# Method and task -> the agent that plays for the method there.
Labels = dict[tuple[str, str], str]


@dataclass(frozen=True)
class Quantity:
    """A quantity that a figure shows against rounds, and the metric by which its beta is chosen."""

    name: str
    title: str
    metric: str


QUANTITIES = (
    Quantity("average_reward", "Average expected reward", "average_score"),
    Quantity("best_reward", "Best expected reward so far", "best"),
)


def rewards(run: Run, quantity: Quantity) -> np.ndarray:
    """Return the quantity after every round, shape ``(rounds,)``."""
    if quantity.name == "best_reward":
        return run.optimum - run.table["best_so_far_regret"].to_numpy()
    return run.table[quantity.name].to_numpy()


def agent_labels(methods: list[str], metric: str) -> Labels:
    """Return the agent of each method on each task: GP-UCB and MCBO with the beta chosen there by ``metric``."""
    labels = {(method, task): UNTUNED.get(method, method) for method in methods for task in TASKS}
    for method in [method for method in methods if method in TUNED]:
        chosen = read_chosen(CHOSEN_BETA, method, "beta", metric)
        for task in TASKS:
            labels[method, task] = f"{method}(beta={chosen.get(task, DEFAULT_BETA)!r})"
        if lacking := [title for task, title in TASKS.items() if task not in chosen]:
            where = "every task" if len(lacking) == len(TASKS) else "; ".join(lacking)
            print(f"{method}: {CHOSEN_BETA.name} has no beta chosen by {metric} for {where}; {DEFAULT_BETA} is used.")
    return labels


def run_all(labels: list[Labels], seeds: int, rounds: int | None, folder: Path, jobs: int) -> list[Run]:
    """Play the runs that the folder lacks, and return all runs that the labels need."""
    pairs = dict.fromkeys((agent, task) for own in labels for (_, task), agent in own.items())
    planned = [job for agent, task in pairs for job in plan([agent], [task], range(seeds), folder, rounds)]
    return run_with_progress(planned, jobs)


def style_of(method: str) -> LineStyle:
    """Return the line style of the agent of a method; MCBO is the agent without tuning."""
    return STYLES[UNTUNED.get(method, "MCBO(tuned)" if method == "MCBO" else method)]


@publication_style
def draw(runs: list[Run], labels: Labels, methods: list[str], quantity: Quantity) -> Figure:
    """Draw the mean over seeds of every method with its interval, in a panel for each task."""
    figure = Figure(figsize=(7.2, 6.4), layout="constrained")
    axes = figure.subplots(3, 3)
    for axis, (task, title) in zip(axes.flat, TASKS.items(), strict=True):
        for method in methods:
            if played := [rewards(run, quantity) for run in finished_runs(runs, labels[method, task], task)]:
                mean_curve(axis, np.stack(played), method, style_of(method))
        scale_to_lines(axis)
        if task in LOGARITHMIC:
            axis.set_yscale("symlog", linthresh=1.0)
            axis.set_ylim(top=1.0)
        axis.set_title(title)
        round_axis(axis)
    for axis in axes[:-1].flat:
        axis.set_xlabel("")
    for axis in axes[:, 0]:
        axis.set_ylabel(quantity.title)
    figure.align_ylabels(axes[:, 0])
    shared_legend(figure)
    return figure


def finished_runs(runs: list[Run], agent: str, task: str) -> list[Run]:
    return [run for run in runs if (run.agent, run.env, run.status) == (agent, task, "finished")]


def final_table(runs: list[Run], labels: dict[Quantity, Labels], methods: list[str]) -> pl.DataFrame:
    """Return each quantity after the last round with half its 95 % interval, by task and method."""
    rows = []
    for task in TASKS:
        for method in methods:
            row = {"task": task, "method": method}
            for quantity, own in labels.items():
                if played := finished_runs(runs, own[method, task], task):
                    last = np.array([rewards(run, quantity)[-1] for run in played])
                    half = float(half_width(last))
                    row |= {
                        quantity.name: float(last.mean()),
                        f"{quantity.name}_half": None if np.isnan(half) else half,
                        f"{quantity.name}_seeds": len(played),
                        f"{quantity.name}_agent": own[method, task],
                    }
            if len(row) > 2:
                rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def print_results(table: pl.DataFrame, runs: list[Run]) -> None:
    shown = [name for name in table.columns if not name.endswith(("_agent", "_seeds"))]
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=120, fmt_str_lengths=40, tbl_hide_dataframe_shape=True):
        print(table.select(shown))
    for agent, env in dict.fromkeys((run.agent, run.env) for run in runs if run.status == "skipped"):
        print(f"skipped: {agent} does not play {env}")
    for run in runs:
        if run.status == "failed":
            print(f"failed: {run.agent} on {run.env}, seed {run.seed}: {run.error.strip().splitlines()[-1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one seed, 2 rounds, two methods: to see that all works")
    parser.add_argument("--seeds", type=int, help="number of seeds, counted from 0 (20, as in the paper)")
    parser.add_argument("--rounds", type=int, help="rounds of a run (the registered number, 100)")
    parser.add_argument("--out", type=Path, help="folder of runs, figures and table (runs/mcbo)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes at a time; -1 for one a core")
    parser.add_argument("--methods", nargs="+", help=f"from {', '.join(METHODS)}; all by default")
    arguments = parser.parse_args()
    methods = arguments.methods or list(QUICK_METHODS if arguments.quick else METHODS)
    if arguments.seeds is None:
        arguments.seeds = 1 if arguments.quick else 20
    if arguments.rounds is None and arguments.quick:
        arguments.rounds = 2
    # Starting processes would take longer than a quick run.
    jobs = 1 if arguments.quick else arguments.jobs
    # Quick runs have a separate folder, because 'choose' compares runs of the same length.
    folder = arguments.out or Path("runs/mcbo-quick" if arguments.quick else "runs/mcbo")

    labels = {quantity: agent_labels(methods, quantity.metric) for quantity in QUANTITIES}
    runs = run_all(list(labels.values()), arguments.seeds, arguments.rounds, folder, jobs)
    table = final_table(runs, labels, methods)
    table.write_csv(folder / "final_rewards.csv")
    for quantity, own in labels.items():
        save(draw(runs, own, methods, quantity), folder, quantity.name)
    print_results(table, runs)
    print(f"Figures and final_rewards.csv are in {folder}.")
    sys.exit(any(run.status == "failed" for run in runs))


if __name__ == "__main__":
    main()
