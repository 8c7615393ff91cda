"""The page "Which method should I use?": the rules of ``Auto`` with their evidence, and comparisons of published runs.

``make choice`` writes the parts of ``docs/which_method.md`` between its marks from :mod:`cbo_gym.agents.choice.rules`
and from the published results on seeds that chose nothing.

A part of a mode's tasks, such as those without noise, is a *slice*. The compared methods of a slice have played five
seeds or more on at least half of its environments. They are compared on the tasks on which each has five seeds. Every
registered environment counts once, with any keywords and numbers of rounds. If fewer than two environments or methods
are left, the page says that nothing is known.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cbo_gym._util.files import write_text
from cbo_gym.agents.choice.rules import RULES
from cbo_gym.envs.registry import entries
from cbo_gym.evaluation.comparison.pairwise import over_envs
from cbo_gym.evaluation.metrics.aggregate import MIN_SEEDS
from cbo_gym.evaluation.report.markdown import with_part
from cbo_gym.evaluation.report.tables import MISSING, with_interval
from cbo_gym.task import Mode
from website.common.markdown import ALL, table
from website.common.paths import DOCS
from website.pages.choice_evidence import ID, LEAST_SHARE, TASK, published_runs

PAGE = DOCS / "which_method.md"
FEW_ROUNDS = 50
LIMITS = (0.001, 0.01, 0.1, 1.0)  # seconds a round
SHOWN = 3


class Mean(NamedTuple):
    """A method on the tasks of a slice: its mean score, seconds a round on its slowest task, and fewest seeds."""

    agent: str
    score: float
    seconds: float
    seeds: int


class Comparison(NamedTuple):
    """Number of a slice's environments, number on which methods are compared, and their means, best first."""

    envs: int
    compared: int
    means: list[Mean]


def compare(runs: pl.DataFrame) -> Comparison:
    """Compare the methods that have played at least half of some environments, on their common tasks.

    A method has played a task if it has enough seeds on it.
    """
    runs = runs.with_columns(id=ID)
    envs, methods = runs["id"].n_unique(), runs.filter(pl.col("agent") != "Random")
    by_task = methods.group_by("id", *TASK, "agent").agg(pl.mean("score", "seconds"), seeds=pl.len())
    by_task = by_task.filter(pl.col("seeds") >= MIN_SEEDS)
    by_task = by_task.filter(pl.col("id").n_unique().over("agent") >= LEAST_SHARE * envs)
    common = by_task.filter(pl.len().over(TASK) == by_task["agent"].n_unique())
    if common["id"].n_unique() < 2 or common["agent"].n_unique() < 2:
        return Comparison(envs, common["id"].n_unique(), [])
    by_env = common.group_by("id", "agent").agg(pl.mean("score"), pl.max("seconds"), pl.min("seeds"))
    means = by_env.group_by("agent").agg(pl.mean("score"), pl.max("seconds"), pl.min("seeds"))
    ranked = means.sort(-pl.col("score").round(9), "agent")
    return Comparison(envs, common["id"].n_unique(), [Mean(*row) for row in ranked.iter_rows()])


#: The parts of a mode's tasks by facts that a reader knows beforehand: the graph, noise, rounds.
NOISELESS = ID.is_in([entry.id for entry in entries() if "noiseless" in entry.tags])
LESS_KNOWN = pl.col("env").str.contains("graph=", literal=True)
SLICES = {
    "all tasks": pl.lit(True),
    "graph known": ~LESS_KNOWN,
    "graph hidden, partial or wrong": LESS_KNOWN,
    "without noise": NOISELESS,
    "with noise": ~NOISELESS,
    f"up to {FEW_ROUNDS} rounds": pl.col("rounds") <= FEW_ROUNDS,
    f"more than {FEW_ROUNDS} rounds": pl.col("rounds") > FEW_ROUNDS,
}


def comparisons(mode: Mode, runs: pl.DataFrame) -> dict[str, Comparison]:
    """Return slice -> the comparison of methods in published runs."""
    rows = runs.filter(pl.col("mode") == str(mode))
    return {name: compare(rows.filter(belongs)) for name, belongs in SLICES.items()}


def mode_part(mode: Mode, runs: pl.DataFrame) -> str:
    """Return the part of the page on a mode."""
    parts = comparisons(mode, runs)
    return "\n\n".join(
        [
            f"## {mode.capitalize()} mode",
            rules_table(mode),
            "Published runs, by what you know beforehand:",
            slices_table(parts),
            "By the seconds that a round may take:",
            limits_table(parts["graph known"].means),
            open_questions(mode, parts),
        ]
    )


def agent_link(agent: str) -> str:
    return f"[{agent}](agents/{agent}.md)"


def rules_table(mode: Mode) -> str:
    """Return the rules of ``Auto`` for a mode: the agent, its case, and the evidence."""
    rules = RULES.get(mode, ())
    rows = [(agent_link(rule.agent), rule.reason, rule.evidence or "None.") for rule in rules]
    return table(["use", "where", "evidence"], rows, left=ALL) if rows else "`Auto` has no rule for this mode yet."


def slices_table(parts: Mapping[str, Comparison]) -> str:
    """Return the best methods of every slice in which methods can be compared."""
    rows = []
    for name, comparison in parts.items():
        if comparison.means:
            means = comparison.means[:SHOWN]
            best = ", ".join(f"{agent_link(mean.agent)} {mean.score:.3f}" for mean in means)
            fewest = min(mean.seeds for mean in means)
            rows.append((name, best, f"{comparison.compared} of {comparison.envs}", str(fewest)))
    header = ["tasks", "best methods and their mean scores", "environments", "fewest seeds"]
    return table(header, rows, left=2) if rows else "None can be compared."


def limits_table(means: Iterable[Mean]) -> str:
    """Return the best method that is quick enough, for each limit of seconds; means come best first."""
    rows = []
    for limit in LIMITS:
        quick = next((mean for mean in means if mean.seconds <= limit), None)
        rows.append((f"{limit:g}", f"{agent_link(quick.agent)} {quick.score:.3f}" if quick else agent_link("Random")))
    return table(["at most", "best of the methods compared"], rows, left=(1,))


def open_questions(mode: Mode, parts: Mapping[str, Comparison]) -> str:
    """Return the slices and cases that no published runs, or too few, tell anything about."""
    missing = [name for name, comparison in parts.items() if comparison.envs and not comparison.means]
    none = [name for name, comparison in parts.items() if not comparison.envs]
    cases = [rule.reason for rule in RULES.get(mode, ()) if rule.evidence.startswith("No evidence")]
    sentences = [
        f"There are no published runs on tasks of these kinds: {'; '.join(none)}." if none else "",
        f"Too few methods have runs in common to compare them: {'; '.join(missing)}." if missing else "",
        f"No published run covers the case that {'; '.join(cases)}." if cases else "",
    ]
    summary = " ".join(filter(None, sentences))
    return f"**Not known.** {summary}" if summary else ""


class Answer(NamedTuple):
    """The choice of ``Auto`` in a mode for a known graph, and its comparison with the closest other method.

    All attributes are strings for the table, and empty if too few runs are published.

    Attributes:
        agent: the method.
        score: mean over environments of the score of its recommendation, with its interval.
        envs: number of environments on which it has enough seeds, of all of the mode.
        seeds: fewest seeds on one of them.
        other: method that comes closest to it, of those with enough seeds on at least half of these environments.
        ahead: difference of the mean scores, seed by seed, with its interval and the number of environments.
        seconds: seconds a round on the slowest task.
    """

    agent: str
    score: str
    envs: str
    seeds: str
    other: str
    ahead: str
    seconds: str


def answer(mode: Mode, runs: pl.DataFrame) -> Answer | None:
    """Return the choice of ``Auto``; None without rules."""
    if not (rules := RULES.get(mode)):
        return None
    agent = next((rule for rule in rules if rule.when in PREFERRED), rules[0]).agent
    graph_known = runs.filter((pl.col("mode") == str(mode)) & ~LESS_KNOWN)
    by_agent = {str(name): rows for (name,), rows in graph_known.partition_by("agent", as_dict=True).items()}
    own = by_agent.pop(agent, graph_known.clear())
    if not (samples := _samples(own, pl.col("score"))):
        return Answer(agent, *[""] * 6)
    score, envs_of_mode = over_envs(samples), graph_known.select(ID.n_unique()).item()
    compared = {}
    for name, rows in by_agent.items():
        paired = own.join(rows, on=[*TASK, "seed"])
        differences = _samples(paired, pl.col("score") - pl.col("score_right"))
        if name != "Random" and len(differences) >= max(2, LEAST_SHARE * len(samples)):
            compared[name] = over_envs(differences)
    other = min(compared, key=lambda name: (compared[name]["difference"], name), default="")
    return Answer(
        agent,
        _interval(score),
        f"{score['envs']} of {envs_of_mode}",
        str(min(map(len, samples))),
        other,
        f"{_interval(compared[other])} on {compared[other]['envs']}" if other else "",
        f"{own.group_by(TASK).agg(pl.mean('seconds'))['seconds'].max():.2g}",
    )


def _samples(runs: pl.DataFrame, value: pl.Expr) -> list[np.ndarray]:
    """Return the values on each environment with enough seeds and instances, averaged over settings and rounds."""
    instance = pl.col("env").str.extract(r"instance_seed=(\d+)")
    units = runs.group_by(ID.alias("id"), instance.alias("instance"), "seed").agg(value.mean().alias("value"))
    groups = units.sort("id", "instance", "seed").group_by("id", maintain_order=True)
    samples = [rows["value"].to_numpy() for _, rows in groups]
    return [values for values in samples if len(values) >= MIN_SEEDS]


def _interval(row: Mapping[str, Any]) -> str:
    return str(with_interval(row, "difference"))


def answers_table(
    runs: pl.DataFrame, links: Callable[[str], str], about: Callable[[Mode], str], seconds: str = "seconds a round"
) -> str:
    """Return one answer for each mode, where the graph is known and time does not matter.

    Args:
        runs: published runs.
        links: returns an agent as it is shown.
        about: returns a mode as it is shown.
        seconds: head of the last column.
    """
    rows = []
    for mode in Mode:
        row = answer(mode, runs) or Answer("", *[""] * 6)
        use = links(row.agent) if row.agent else "not known yet"
        other = links(row.other) if row.other else ""
        rows.append([about(mode), use, row.score, row.envs, row.seeds, other, row.ahead, row.seconds])
    header = ["mode", "use", "mean score", "environments", "seeds", "closest other", "ahead by", seconds]
    answers = table(header, [[cell or MISSING for cell in row] for row in rows], left=2)
    return f'<div class="answers" markdown>\n\n{answers}\n\n</div>'


#: Conditions of the rules that the short table shows: the diagram is known, or what corresponds to that in other modes.
#: In dynamic mode this is that there are many time series, for which the rule's method is the best on average.
PREFERRED = ((), ("known",), ("separable",), ("many_series",))


def parts() -> dict[str, str]:
    """Return the generated parts of the page: its short table, and the part on each mode."""
    runs = published_runs(for_publication=True)
    short = answers_table(runs, agent_link, lambda mode: f"[{mode}](#{mode}-mode)")
    return {"short": short + "\n", "modes": "\n\n".join(mode_part(mode, runs) for mode in Mode) + "\n"}


def write() -> None:
    """Write the parts into the page."""
    for name, content in parts().items():
        write_text(PAGE, with_part(PAGE, name, content))
