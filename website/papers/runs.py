"""List and play the missing runs of the papers' pages, on seeds for publication.

    python -m website.papers.runs ccbo2023                  # how many are missing, and about how long they take
    python -m website.papers.runs ccbo2023 --play --jobs 2  # plays them into runs/pages/ccbo2023, and resumes there
    cbo-gym publish runs/pages/ccbo2023 --suite ccbo2023

A pair is a seed on which two methods are compared. A claim says how many pairs it needs; an exhibit (a figure or table)
needs the number in the paper's rules. Runs for claims are played first.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from cbo_gym import sweep
from cbo_gym.agent_registry.finding import find_agent, modes_of
from cbo_gym.agent_registry.labels import bare_name
from cbo_gym.envs.registry import find_entry
from cbo_gym.evaluation import load_published
from cbo_gym.evaluation.claims.papers import Paper, papers
from cbo_gym.evaluation.play.forecast import forecast
from cbo_gym.evaluation.play.grid import plan
from cbo_gym.evaluation.runs.results import Recommend, Run
from cbo_gym.evaluation.seed_ranges import INSTANCE_SEED
from cbo_gym.evaluation.suites import load
from website.common.paths import ROOT


class RequestedRun(NamedTuple):
    """A run that a page asks for, ``recommend`` as in :func:`cbo_gym.evaluate`."""

    agent: str
    env: str
    horizon: int
    seed: int
    recommend: Recommend


class Grid(NamedTuple):
    """Runs of an agent on several environments with the same seeds."""

    agent: str
    horizon: int
    recommend: Recommend
    seeds: tuple[int, ...]
    envs: list[str]


def requested_runs(paper: Paper) -> list[RequestedRun]:
    """Return all runs of a page, those for claims first, each once."""
    suite = load(paper.suite)
    labels = [label for exhibit in paper.exhibits for label in exhibit.environments]
    runs: dict[RequestedRun, None] = {}
    for agent, env, pairs, horizon in _requests(paper):
        for label, seed in _units(env, labels, pairs, suite.first_seed) if _plays(agent, env) else ():
            runs[RequestedRun(agent, label, horizon or suite.rounds(label), seed, paper.recommend)] = None
    return list(runs)


def _plays(agent: str, env: str) -> bool:
    """Return whether an agent plays an environment's mode; a figure of several modes has methods of each."""
    entry = find_entry(bare_name(env))
    return entry is None or entry.mode in modes_of(find_agent(bare_name(agent)))


def _requests(paper: Paper) -> Iterator[tuple[str, str, int, int | None]]:
    """Yield agent, environment or pattern, number of pairs, and rounds (None for the suite's); claims first."""
    for exhibit in paper.exhibits:
        for claim in [claim for entry in exhibit.claims for claim in entry.claims(paper.rules)]:
            # The last look at the runs has the most pairs.
            pairs = claim.looks[-1]
            for env in claim.envs:
                yield claim.better, env, pairs, exhibit.horizon
                yield claim.worse, claim.worse_env or env, pairs, exhibit.horizon
    for exhibit in paper.exhibits:
        for agent, env in product(exhibit.agents, exhibit.environments):
            yield agent, env, paper.rules.pairs, exhibit.horizon


def _units(env: str, labels: Sequence[str], pairs: int, first: int) -> Iterator[tuple[str, int]]:
    """Yield the environments and seeds of a number of pairs, from the first seed or instance on.

    With ``instance_seed=*`` every pair has another instance, and the first seed. A named instance has only the first
    seed. A ``*`` as the value of another keyword stands for all its values in ``labels``.
    """
    if (counted := f"{INSTANCE_SEED}=*") in env:
        yield from ((env.replace(counted, f"{INSTANCE_SEED}={first + i}"), first) for i in range(pairs))
    else:
        seeds = range(first, first + (1 if INSTANCE_SEED in env else pairs))
        yield from product(_settings(env, labels), seeds)


def _settings(env: str, labels: Sequence[str]) -> list[str]:
    """Return the labels that match a pattern, in which ``*`` is any value of a keyword."""
    if (wildcard := re.search(r"(\w+)=\*", env)) is None:
        return [env]
    keyword, system = wildcard[1], bare_name(env)
    labels_of_system = (label for label in labels if bare_name(label) == system)
    values = {value for label in labels_of_system for value in re.findall(rf"\b{keyword}=([^,)*]+)", label)}
    filled = [env.replace(wildcard[0], f"{keyword}={value}") for value in sorted(values)]
    return [label for pattern in filled for label in _settings(pattern, labels)]


def missing_runs(paper: Paper, stored: Iterable[Run]) -> list[RequestedRun]:
    """Return the runs that are not stored, of any revision, with as many rounds and at least these recommendations."""
    enough = {"every", paper.recommend}
    stored_runs = {
        RequestedRun(run.agent, run.env, run.horizon, run.seed, paper.recommend)
        for run in stored
        if run.status != "failed" and run.recommend in enough
    }
    return [run for run in requested_runs(paper) if run not in stored_runs]


def grids(wanted: Iterable[RequestedRun]) -> Iterator[Grid]:
    """Yield runs by agent, system, rounds and seeds, in their order; the instances of a family are one grid."""
    seeds_of: dict[RequestedRun, list[int]] = defaultdict(list)
    for run in wanted:
        seeds_of[run._replace(seed=0)].append(run.seed)
    envs_of: dict[tuple[RequestedRun, tuple[int, ...]], list[str]] = defaultdict(list)
    for run, seeds in seeds_of.items():
        envs_of[run._replace(env=bare_name(run.env)), tuple(seeds)].append(run.env)
    for (run, shared_seeds), envs in envs_of.items():
        yield Grid(run.agent, run.horizon, run.recommend, shared_seeds, envs)


def estimate(wanted: Iterable[RequestedRun], folder: Path) -> float:
    """Return seconds that runs take, estimated from finished ones."""
    jobs = [
        job
        for grid in grids(wanted)
        for job in plan(grid.agent, grid.envs, grid.seeds, folder, grid.horizon, grid.recommend)
    ]
    return forecast(jobs, ROOT / "results").seconds


def play(wanted: Iterable[RequestedRun], folder: Path, jobs: int) -> None:
    """Play runs in their order, a grid at a time."""
    for grid in grids(wanted):
        sweep(grid.agent, grid.envs, grid.seeds, folder, horizon=grid.horizon, recommend=grid.recommend, n_jobs=jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    by_suite = {paper.suite: paper for paper in papers()}
    parser.add_argument("suite", choices=by_suite, metavar="SUITE", help=f"suite of the paper: {', '.join(by_suite)}")
    parser.add_argument("--play", action="store_true", help="play the missing runs")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time; -1 for one per core")
    arguments = parser.parse_args()
    paper, folder = by_suite[arguments.suite], ROOT / "runs" / "pages" / arguments.suite
    published = ROOT / "results" / f"{paper.suite}.parquet"
    # A new paper has no file until its first runs are published.
    wanted = missing_runs(paper, load_published(published) if published.is_file() else [])
    hours = estimate(wanted, folder) / 3600.0 if wanted else 0.0
    count = len(requested_runs(paper))
    print(f"{paper.suite}: {count} runs asked for, {len(wanted)} missing, about {hours:.1f} core hours")
    if arguments.play:
        play(wanted, folder, arguments.jobs)


if __name__ == "__main__":
    main()
