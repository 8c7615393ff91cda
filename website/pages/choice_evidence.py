"""Compare the rules of ``Auto`` with every single agent, on the published results: ``make choice``.

``Auto`` is the agent that chooses another agent by the task. That agent plays as it plays alone, so Auto's score on an
environment is the published score of the agent that it chooses there: the leaderboard's score of the last
recommendation. To ask Auto, the tasks are created, which takes a few minutes; no round is played. Runs of one
registered environment with other keywords or numbers of rounds are averaged, so that every environment counts once.

All this is done twice: on the seeds by which rules may be chosen, and on those for publication, which evaluate them.
With ``--write`` the comparison on seeds for publication, and the rules, are written into ``docs/methods/Auto.md``;
``--seconds`` shows the seconds of each agent.
"""

import argparse
import warnings
from collections.abc import Iterable

import polars as pl

from cbo_gym import make_task
from cbo_gym._util.files import write_text
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.agents import Auto
from cbo_gym.agents.choice.rules import LAST, RULES
from cbo_gym.envs.making import make_env
from cbo_gym.evaluation import load_published
from cbo_gym.evaluation.claims.tables import SHOWCASE
from cbo_gym.evaluation.comparison.leaderboard import final_numbers
from cbo_gym.evaluation.metrics.aggregate import MIN_SEEDS
from cbo_gym.evaluation.report.markdown import with_part
from cbo_gym.evaluation.runs.counted import newest
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.seed_ranges import is_for_publication
from cbo_gym.evaluation.store.published import package_store
from website.common.markdown import ALL, table
from website.common.paths import DOCS

PAGE = DOCS / "methods" / "Auto.md"
NAMES, NUMBERS, COUNTS = ("mode", "agent", "env"), ("score", "seconds"), ("seed", "rounds")
SCHEMA = dict.fromkeys(NAMES, pl.String) | dict.fromkeys(NUMBERS, pl.Float64) | dict.fromkeys(COUNTS, pl.Int64)
TASK = ("env", "rounds")
# The registered id of an environment, without keywords.
ID = pl.col("env").str.replace(r"\(.*", "")
# A column that only runs with several objectives have.
OF_SEVERAL = "gd_plus"
# Smallest share of a mode's environments that an agent must have played to be compared.
LEAST_SHARE = 0.5


def published_runs(*, for_publication: bool = False) -> pl.DataFrame:
    """Return the table of published runs by which rules may be chosen, or else of those on seeds for publication.

    Runs of the README's table are in neither, because they were timed on a busy machine. Most runs by which rules may
    be chosen are in the store's history, which has runs that newer ones replaced.
    """
    files = package_store().glob("*.parquet") if for_publication else package_store().rglob("*.parquet")
    paths = [path for path in sorted(files) if path.stem != SHOWCASE]
    runs = (run for path in paths for run in load_published(path))
    return runs_table(run for run in runs if on_publication_seeds(run) == for_publication)


def on_publication_seeds(run: Run) -> bool:
    """Return whether a run is on seeds for publication, which are never used to choose a method."""
    return is_for_publication(run.seed, Spec.from_label(run.env).keywords)


def runs_table(runs: Iterable[Run]) -> pl.DataFrame:
    """Return a row for each finished run of an agent with its defaults: mode, env, rounds, agent, seed, score, seconds.

    Runs with several objectives are left out: Auto does not play these.
    """
    finished = (run for run in newest(runs) if run.status == "finished" and not run.unverified)
    single = [run for run in finished if OF_SEVERAL not in run.columns]
    if not single:
        return pl.DataFrame(schema=SCHEMA)
    rows = (
        final_numbers(single)
        .select("mode", "agent", "seed", "score", "seconds")
        .with_columns(env=pl.Series([run.env for run in single]), rounds=pl.Series([run.horizon for run in single]))
    )
    has_defaults = ~pl.col("agent").str.contains("(", literal=True)
    return rows.filter(has_defaults & (pl.col("agent") != "Auto"))


def choice_on(env: str, rounds: int) -> str:
    """Return the agent that Auto chooses."""
    auto = Auto()
    with warnings.catch_warnings():
        # Old versions of environments warn that newer ones replace them.
        warnings.simplefilter("ignore")
        playable = make_env(Spec.parse(env), rounds)
        auto.reset(make_task(playable, 0), 0)
        playable.close()
    return auto.chosen.agent


def choices_on(table: pl.DataFrame) -> pl.DataFrame:
    """Return the choice of Auto on each task of a table of runs: mode, env, rounds, agent."""
    tasks = table.select("mode", *TASK).unique().sort("mode", *TASK)
    return tasks.with_columns(agent=pl.Series([choice_on(*task) for task in tasks.select(TASK).iter_rows()]))


def compare(table: pl.DataFrame, choices: pl.DataFrame) -> pl.DataFrame:
    """Compare Auto with every agent on the seeds and environments that both have, a row for each mode and agent.

    Columns: ``environments`` on which both have played, ``of`` how many, the mean scores ``auto`` and ``other``, the
    fewest runs, ``seeds``, that both have on an environment, and by how much Auto is ``ahead``. Environments with fewer
    than five such runs do not count.
    """
    own = table.join(choices, on=["mode", *TASK, "agent"]).select(*TASK, "seed", auto="score")
    tasks = table.join(own, on=[*TASK, "seed"]).group_by("mode", "agent", *TASK)
    means = tasks.agg(pl.mean("auto"), pl.mean("score"), seeds=pl.len())
    envs = means.group_by("mode", "agent", ID).agg(pl.mean("auto", "score"), pl.sum("seeds"))
    envs = envs.filter(pl.col("seeds") >= MIN_SEEDS)
    scores = envs.group_by("mode", "agent").agg(
        pl.mean("auto"), pl.min("seeds"), other=pl.mean("score"), environments=pl.len()
    )
    every = table.group_by("mode").agg(of=ID.n_unique())
    return scores.join(every, on="mode").with_columns(ahead=pl.col("auto") - pl.col("other")).sort("mode", "agent")


def rivals(scores: pl.DataFrame) -> pl.DataFrame:
    """Return for each mode the agent that comes closest to Auto, of those that played enough environments."""
    most = pl.col("environments").max().over("mode")
    often = scores.filter(pl.col("environments") >= LEAST_SHARE * most)
    return often.sort("mode", "ahead", "agent").unique("mode", keep="first", maintain_order=True)


def comparison_table(scores: pl.DataFrame) -> str:
    """Return a table of Markdown."""
    header = ["mode", "the other", "environments", "Auto", "the other's", "ahead", "fewest runs"]
    rows = [
        (row["mode"], row["agent"], f"{row['environments']} of {row['of']}", f"{row['auto']:.4f}",
         f"{row['other']:.4f}", f"{row['ahead']:+.4f}", str(row["seeds"]))
        for row in scores.to_dicts()
    ]  # fmt: skip
    return table(header, rows, left=2)


def rules_table() -> str:
    """Return all rules as a table of Markdown."""
    rows = [(mode, f"[{rule.agent}]({rule.agent}.md)", rule.reason) for mode in RULES for rule in RULES[mode]]
    rows.append(("any", f"[{LAST.agent}]({LAST.agent}.md)", LAST.reason))
    return table(["mode", "agent", "plays where"], rows, left=ALL)


def slowest(table: pl.DataFrame) -> str:
    """Return for each mode and agent the mean seconds a round on its slowest task, as the rules have them."""
    means = table.group_by("mode", "agent", *TASK).agg(pl.mean("seconds"))
    most = means.group_by("mode", "agent").agg(pl.max("seconds")).sort("mode", "seconds")
    return "\n".join(f"{mode:12} {agent:18} {seconds:.2g}" for mode, agent, seconds in most.iter_rows())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/methods/Auto.md")
    parser.add_argument("--seconds", action="store_true", help="only show the seconds of a round")
    arguments = parser.parse_args()
    choosing = published_runs()
    if arguments.seconds:
        print(slowest(choosing))
        return
    for name, runs in {"choosing": choosing, "judged": published_runs(for_publication=True)}.items():
        choices = choices_on(runs)
        scores = compare(runs, choices)
        closest = comparison_table(rivals(scores))
        chosen = "\n".join(f"{mode}: {env}, T={rounds}: {agent}" for mode, env, rounds, agent in choices.iter_rows())
        print(f"\n# {name.capitalize()}\n\n{chosen}\n\n## All agents\n\n{comparison_table(scores)}")
        print(f"\n## The closest of each mode\n\n{closest}")
    if arguments.write:
        for name, content in {"rules": rules_table(), "judged": closest}.items():
            write_text(PAGE, with_part(PAGE, name, content + "\n"))


if __name__ == "__main__":
    main()
