"""The published runs that count for a suite on the leaderboard, and notes on their seeds and pairs."""

from collections import defaultdict
from collections.abc import Iterable

from cbo_gym.evaluation.claims.tables import RunsByFile, counted_runs
from cbo_gym.evaluation.report.markdown import escape
from cbo_gym.evaluation.runs.counted import newest
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.seed_ranges import PUBLICATION
from cbo_gym.evaluation.suites import Suite
from website.common.notes import note

MAX_LISTED = 12


def suite_runs(suite: Suite, runs_by_file: RunsByFile) -> list[Run]:
    """Return runs on the suite's environments with its number of rounds, from all files.

    For an environment without such runs, return the longest ones of the suite's own file instead.
    """
    rounds, runs_by_file = {label: suite.rounds(label) for label in suite.labels()}, counted_runs(suite, runs_by_file)
    runs = newest(run for runs in runs_by_file.values() for run in runs if run.horizon == rounds.get(run.env))
    finished_envs = {run.env for run in runs if run.status == "finished"}
    shorter = newest(run for run in runs_by_file.get(suite.name, ()) if run.env in rounds.keys() - finished_envs)
    longest: dict[str, int] = defaultdict(int)
    for run in shorter:
        if run.status == "finished":
            longest[run.env] = max(run.horizon, longest[run.env])
    return [*runs, *(run for run in shorter if run.horizon == longest.get(run.env))]


def seeds_note(suite: Suite) -> str:
    """Return the seeds of verdicts and tables, and whether defaults may have been chosen on them."""
    seeds = f"seeds and instances {suite.first_seed} to {PUBLICATION.stop - 1}"
    return note("judged" if suite.verdict_seeds == "publication" else "judged_on_any", seeds=seeds)


def pairs_in_words(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return ``MCBO on Alpine2-v0, Ackley-v0``: pairs of an agent and an environment, a string for each agent."""
    envs: dict[str, list[str]] = defaultdict(list)
    for agent, label in pairs:
        envs[agent].append(label.removeprefix("CBO/"))
    return [
        f"{escape(agent)} on {escape(', '.join(labels[:MAX_LISTED]))}"
        + (f" and {len(labels) - MAX_LISTED} more" if len(labels) > MAX_LISTED else "")
        for agent, labels in envs.items()
    ]


def targets_path(suite: Suite, mode: str) -> str:
    """Return the path, without its ending, of the picture of how soon a suite's runs reached scores."""
    return f"papers/pictures/targets-{suite.name}-{mode}"
