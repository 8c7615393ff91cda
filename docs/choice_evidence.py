"""Hold the rules of ``Auto`` against every single agent, on the published results: ``python docs/choice_evidence.py``.

An agent that Auto chose plays as it plays by itself, so Auto's score on an environment is the published score of the
agent that it would choose there. Each other agent is compared on the environments that both have played, over the seeds
that both have, by the leaderboard's score of the last recommendation. Runs of one registered environment with other
keywords or other numbers of rounds are averaged first, so that every environment counts once. The environment's tasks
are made anew to ask Auto, which takes a few minutes; no round is played.

That is done twice: on seeds by which rules may be chosen, and on those for publication, which judge them. With
``--write`` the latter, and the rules, are written into ``docs/methods/Auto.md``; ``--seconds`` shows what each agent
took.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from tables import ALL, table

from cbo_gym import make_task
from cbo_gym.agents import Auto
from cbo_gym.agents.choice.rules import LAST, RULES
from cbo_gym.evaluation import load_published
from cbo_gym.evaluation.compare.leaderboard import final_numbers
from cbo_gym.evaluation.report.markdown import with_part
from cbo_gym.evaluation.runs.counted import newest
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.store.published import own_store
from cbo_gym.files import write_text
from cbo_gym.labels import bare_name
from cbo_gym.seed_ranges import is_for_publication
from cbo_gym.specs import Spec, make_env

PAGE = Path(__file__).parent / "methods" / "Auto.md"
TEXTS, NUMBERS, COUNTS = ("mode", "agent", "env"), ("score", "seconds"), ("seed", "rounds")
COLUMNS = dict.fromkeys(TEXTS, pl.String) | dict.fromkeys(NUMBERS, pl.Float64) | dict.fromkeys(COUNTS, pl.Int64)
SHOWCASE = "showcase"  # the file of the README's table
OF_SEVERAL = "gd_plus"  # a column of runs with several objectives
LEAST_SHARE = 0.5  # of a mode's environments, on which an agent must have played to be called a rival

Scores = dict[str, dict[int, float]]  # agent -> seed -> score
Played = tuple[str, int]  # the environment with its keywords, and the rounds


class Against(NamedTuple):
    """Auto and one other agent: on how many environments, of how many that anybody has played, their mean scores, and
    the fewest seeds that both have on one of these environments."""

    mode: str
    agent: str
    environments: int
    of: int
    auto: float
    other: float
    seeds: int

    @property
    def ahead(self) -> float:
        return self.auto - self.other


def published(*, judging: bool = False) -> pl.DataFrame:
    """The table of all published runs by which rules may be chosen, or of those on seeds for publication, which judge.

    Runs of the README's table, whose seconds are of a busy machine, are in neither. Most of the former are in the
    store's history, where those stay that judged and were replaced.
    """
    files = own_store().glob("*.parquet") if judging else own_store().rglob("*.parquet")
    parts = [path for path in sorted(files) if path.stem != SHOWCASE]
    runs = (run for path in parts for run in load_published(path))
    return table_of(run for run in runs if judges(run) == judging)


def judges(run: Run) -> bool:
    """Whether a run is on seeds for publication, by which nothing is chosen."""
    return is_for_publication(run.seed, Spec.told(run.env).keywords)


def table_of(given: Iterable[Run]) -> pl.DataFrame:
    """A row for each finished run of an agent with its defaults: mode, env, rounds, agent, seed, score, seconds.

    Runs with several objectives have none: Auto does not play these.
    """
    finished = (run for run in newest(given) if run.status == "finished" and not run.unverified)
    runs = [run for run in finished if OF_SEVERAL not in run.columns]
    if not runs:
        return pl.DataFrame(schema=COLUMNS)
    table = final_numbers(runs).select("mode", "agent", "seed", "score", "seconds")
    known = table.with_columns(
        env=pl.Series([run.env for run in runs]), rounds=pl.Series([run.horizon for run in runs])
    )
    return known.filter(~pl.col("agent").str.contains("(", literal=True) & (pl.col("agent") != "Auto"))


def scores_of(table: pl.DataFrame) -> dict[Played, Scores]:
    found: dict[Played, Scores] = defaultdict(lambda: defaultdict(dict))
    for row in table.iter_rows(named=True):
        found[row["env"], row["rounds"]][row["agent"]][row["seed"]] = row["score"]
    return found


def choice_on(played: Played) -> str:
    """The agent that Auto chooses."""
    label, rounds = played
    auto = Auto()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # versions that newer ones replace
        env = make_env(Spec.parse(label), rounds)
        auto.reset(make_task(env, 0), 0)
        env.close()
    return auto.chosen.agent


def against(mode: str, other: str, scores: Mapping[Played, Scores], choices: Mapping[Played, str]) -> Against | None:
    """Auto and another agent, where both have played; None if nowhere."""
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    common = []
    for played, found in scores.items():
        mine, theirs = found.get(choices[played], {}), found.get(other, {})
        if seeds := mine.keys() & theirs.keys():
            own, its = (float(np.mean([one[seed] for seed in seeds])) for one in (mine, theirs))
            pairs[bare_name(played[0])].append((own, its))
            common.append(len(seeds))
    if not pairs:
        return None
    auto, others = np.mean([np.mean(found, axis=0) for found in pairs.values()], axis=0)
    every = {bare_name(label) for label, _ in scores}
    return Against(mode, other, len(pairs), len(every), float(auto), float(others), min(common))


def compared(table: pl.DataFrame) -> tuple[list[Against], dict[str, dict[Played, str]]]:
    """Auto and all others in every mode, and what it chose."""
    found, chosen = [], {}
    for mode in sorted(table["mode"].unique()):
        rows = table.filter(pl.col("mode") == mode)
        scores = scores_of(rows)
        chosen[mode] = {played: choice_on(played) for played in sorted(scores)}
        others = (against(mode, other, scores, chosen[mode]) for other in sorted(rows["agent"].unique()))
        found += [one for one in others if one is not None]
    return found, chosen


def rivals(found: Iterable[Against]) -> list[Against]:
    """Of each mode the agent that comes closest to Auto, of those that have played on enough environments."""
    by_mode: dict[str, list[Against]] = defaultdict(list)
    for one in found:
        by_mode[one.mode].append(one)
    return [
        min(
            (one for one in ones if one.environments >= LEAST_SHARE * max(each.environments for each in ones)),
            key=lambda one: one.ahead,
        )
        for ones in by_mode.values()
    ]


def lines(found: Iterable[Against]) -> str:
    """A table of Markdown."""
    header = ["mode", "the other", "environments", "Auto", "the other's", "ahead", "fewest seeds"]
    rows = [
        (one.mode, one.agent, f"{one.environments} of {one.of}", *map("{:.4f}".format, (one.auto, one.other)),
         f"{one.ahead:+.4f}", str(one.seeds))
        for one in found
    ]  # fmt: skip
    return table(header, rows, texts=2)


def rules() -> str:
    """All rules as a table of Markdown."""
    rows = [(mode, f"[{rule.agent}]({rule.agent}.md)", rule.reason) for mode in RULES for rule in RULES[mode]]
    rows.append(("any", f"[{LAST.agent}]({LAST.agent}.md)", LAST.reason))
    return table(["mode", "agent", "plays where"], rows, texts=ALL)


def slowest(table: pl.DataFrame) -> str:
    """Of each mode and agent the slowest environment's mean seconds a round, as the rules have them."""
    means = table.group_by("mode", "agent", "env", "rounds").agg(pl.col("seconds").mean())
    most = means.group_by("mode", "agent").agg(pl.col("seconds").max()).sort("mode", "seconds")
    return "\n".join(f"{mode:12} {agent:18} {seconds:.2g}" for mode, agent, seconds in most.iter_rows())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/methods/Auto.md")
    parser.add_argument("--seconds", action="store_true", help="only show what rounds took")
    given = parser.parse_args()
    choosing = published()
    if given.seconds:
        print(slowest(choosing))
        return
    found_on = {}
    for name, runs in {"choosing": choosing, "judged": published(judging=True)}.items():
        found, chosen = compared(runs)
        print(f"\n# {name.capitalize()}")
        for mode, choices in chosen.items():
            print(f"\n## {mode}")
            print("\n".join(f"{env}, T={rounds}: {agent}" for (env, rounds), agent in choices.items()))
        found_on[name] = lines(rivals(found))
        print("\n## Everybody\n\n" + lines(found) + "\n\n## The closest of each mode\n\n" + found_on[name])
    if given.write:
        for name, part in {"rules": rules(), "judged": found_on["judged"]}.items():
            write_text(PAGE, with_part(PAGE, name, part + "\n"))


if __name__ == "__main__":
    main()
