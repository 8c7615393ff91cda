"""The pictures of the README, from real runs: ``make pictures`` writes them into ``docs/pictures``.

* ``learning.gif``: an agent learns a system, round after round;
* ``curves.png``: regret in every task of the README's table, from the published results;
* ``paper.png``: the results of a paper next to ours, from ``cbo_gym/evaluation/claims/data`` and the published results;
* ``report.png``: the report that ``cbo-gym leaderboard`` writes, photographed by Chromium.
"""

import argparse
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import gymnasium as gym
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from cbo_gym import evaluate, leaderboard, make_task
from cbo_gym.agent_registry.finding import create_agent
from cbo_gym.evaluation import load_published
from cbo_gym.evaluation.claims.papers import papers
from cbo_gym.evaluation.report.page import write_report
from cbo_gym.evaluation.report.palette import line_styles
from cbo_gym.evaluation.report.plots import mean_curve, publication_style, round_axis, shared_legend
from cbo_gym.task import Mode
from website.commands import showcase
from website.common.paths import DOCS
from website.papers.figures import curve_of

FOLDER = DOCS / "pictures"
LEARNER, SYSTEM, ROUNDS = "MCBO", "CBO/Alpine2-v0", 25
MILLISECONDS = 500  # duration of a frame
COLOURS = 32
PAPER, TABLES = "excbo2024", ("Table 2", "Table 3")
REPORTED = "cbomw2024"
REPORT_SIZE = (1100, 800)


@publication_style
def draw_learning(path: Path) -> None:
    """Draw the rendered rounds of one agent, above the rewards so far."""
    env = gym.make(SYSTEM, render_mode="rgb_array")
    task, agent = make_task(SYSTEM, seed=0), create_agent(LEARNER)
    observation, _ = env.reset(seed=0)
    agent.reset(task, 0)
    optimum = evaluate("Random", SYSTEM, 0, horizon=1).optimum
    rewards, frames = [], []
    for _ in range(ROUNDS):
        action = agent.act(observation)
        observation, reward, _, _, info = env.step(action)
        agent.update(action, observation, reward, info)
        rewards.append(float(reward))
        frames.append(_frame(np.asarray(env.render()), rewards, optimum).quantize(COLOURS))
    durations = [MILLISECONDS] * (ROUNDS - 1) + [6 * MILLISECONDS]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=True)


def _frame(picture: np.ndarray, rewards: list[float], optimum: float) -> Image.Image:
    """Return the rendered environment above the rewards so far."""
    width, height = picture.shape[1] / 100, picture.shape[0] / 100
    total_height = height + 1.5
    figure = Figure(figsize=(width, total_height), dpi=80)
    top = figure.add_axes((0, 1.5 / total_height, 1, height / total_height))
    top.imshow(picture)
    top.axis("off")
    below = figure.add_axes((0.07, 0.42 / total_height, 0.9, 0.95 / total_height))
    below.axhline(optimum, color="#999999", linewidth=1, linestyle="--")
    below.text(ROUNDS + 0.3, optimum, "optimum", ha="right", va="bottom", fontsize=8, color="#555555")
    below.plot(range(1, len(rewards) + 1), rewards, marker="o", color=line_styles([LEARNER])[LEARNER].colour)
    below.set(xlim=(0.5, ROUNDS + 0.5), ylim=(-1.0 * optimum, 1.3 * optimum), xlabel="Round", ylabel="Reward")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy())


@publication_style
def draw_curves(path: Path) -> None:
    """Draw the average regret over the rounds so far, a panel for each task of the README's table.

    The regret of partial mode is that of the best full evaluation so far, because other rounds buy single measurements.
    """
    runs = [run for run in load_published(suite=showcase.SUITE) if run.status == "finished"]
    styles = line_styles(showcase.AGENTS)
    columns = 4
    figure = Figure(figsize=(9.6, 1.9 * -(-len(showcase.MODES) // columns)), layout="constrained")
    for index, (mode, example) in enumerate(showcase.MODES.items()):
        axis = figure.add_subplot(-(-len(showcase.MODES) // columns), columns, index + 1)
        regret = "best_so_far_regret" if mode == Mode.PARTIAL else "average_regret"
        for agent in showcase.AGENTS:
            own = [run for run in runs if (run.agent, run.env) == (agent, example.env)]
            if own:
                scale = own[0].optimum - own[0].random_value
                lines = np.stack([run.curve(regret) / scale for run in own])
                mean_curve(axis, lines, agent, styles[agent])
        note = ", best so far" if mode == Mode.PARTIAL else ""
        axis.set_title(f"{mode}: {example.env.removeprefix('CBO/').removesuffix('-v0')}{note}", fontsize=8)
        axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
        round_axis(axis)
    figure.supylabel("Average regret (1 = random)", fontsize=8.5)
    shared_legend(figure)
    _save(figure, path)


@publication_style
def draw_paper(path: Path) -> None:
    """Draw printed numbers with their standard deviations next to our means with 95 % intervals."""
    (paper,) = (paper for paper in papers() if paper.suite == PAPER)
    exhibits = [exhibit for exhibit in paper.exhibits if exhibit.name in TABLES]
    runs = [run for run in load_published() if run.status == "finished"]
    figure = Figure(figsize=(8.0, 2.6), layout="constrained")
    axes = figure.subplots(1, len(exhibits))
    for axis, exhibit in zip(axes, exhibits, strict=True):
        (env,) = exhibit.environments
        styles = line_styles(exhibit.published_numbers)
        for agent in exhibit.published_numbers:
            printed = np.array(
                [[float(number) for number in cell.split("±")] for cell in exhibit.published_numbers[agent]]
            )
            axis.errorbar(
                exhibit.rounds, printed[:, 0], printed[:, 1], label=f"{agent}, printed", color=styles[agent].colour,
                marker=styles[agent].marker, linestyle="none", capsize=3,
            )  # fmt: skip
            own = [run for run in runs if (run.agent, run.env, run.horizon) == (agent, env, paper.rounds)]
            curve_by_seed = {run.seed: curve_of(run, "best_reward") for run in own}
            mean_curve(axis, np.stack(list(curve_by_seed.values())), f"{agent}, ours", styles[agent])
        axis.set_title(f"{exhibit.name}: {env.removeprefix('CBO/').removesuffix('-v0')}", fontsize=8)
        axis.set_ylabel("Best expected reward so far")
        round_axis(axis)
    shared_legend(figure)
    _save(figure, path)


def photograph_report(path: Path) -> None:
    """Write a screenshot of the first screen of a report on published runs.

    Raises:
        FileNotFoundError: if Chromium is not installed.
    """
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise FileNotFoundError("the picture of the report needs Chromium, whose command was not found")
    with TemporaryDirectory() as folder:
        board = leaderboard(load_published(suite=REPORTED))
        page = write_report(board, Path(folder) / "report", formats=())
        screenshot = Path(folder) / "screenshot.png"
        options = (
            "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars "
            f"--virtual-time-budget=5000 --window-size={REPORT_SIZE[0]},{REPORT_SIZE[1]}"
        ).split()
        paths = [f"--user-data-dir={folder}/browser", f"--screenshot={screenshot}", page.as_uri()]
        subprocess.run([chromium, *options, *paths], check=True, capture_output=True, timeout=120)
        Image.open(screenshot).convert("RGB").quantize(64).save(path, optimize=True)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=110, metadata={"Software": None})
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)


PICTURES: dict[str, Callable[[Path], None]] = {
    "learning.gif": draw_learning,
    "curves.png": draw_curves,
    "paper.png": draw_paper,
    "report.png": photograph_report,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help=f"pictures to draw, of {', '.join(PICTURES)}; all by default")
    FOLDER.mkdir(exist_ok=True)
    for name in parser.parse_args().names or PICTURES:
        PICTURES[name](FOLDER / name)
        print(f"{name}: {(FOLDER / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
