"""Tables of published runs."""

import polars as pl

from website.pages import choice_evidence


def runs_with(scores, seconds=None):
    """Return a table of runs in soft mode with these scores: (environment, rounds) -> agent -> seed -> score.

    A run takes 0.1 seconds a round, unless ``seconds`` has (task, agent) -> another number.
    """
    rows = [
        {"mode": "soft", "env": env, "rounds": rounds, "agent": agent, "seed": seed, "score": score,
         "seconds": (seconds or {}).get(((env, rounds), agent), 0.1)}
        for (env, rounds), agents in scores.items() for agent, seeds in agents.items() for seed, score in seeds.items()
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=choice_evidence.SCHEMA)
