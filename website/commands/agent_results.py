"""The results on the agents' pages.

``make agent-results`` plays every agent on the environments below into ``runs/agents`` (half an hour on two cores) and
publishes the runs; ``make readme`` writes ``docs/data/agents.csv`` from the published results.
"""

from __future__ import annotations

import argparse

import polars as pl

from cbo_gym import sweep
from cbo_gym._util.files import write_text
from cbo_gym.agent_registry.finding import known_agents
from cbo_gym.evaluation import Leaderboard, leaderboard, load_published
from cbo_gym.evaluation.compare.provenance import provenance
from cbo_gym.evaluation.seed_ranges import PUBLICATION
from website.common.paths import DOCS, ROOT

RESULTS = DOCS / "data" / "agents.csv"
SUITE = "agents"  # file of the published results
COLUMNS = ["mode", "env", "agent", "score", "score_half", "average_score", "average_score_half", "seconds"]
SEEDS = range(PUBLICATION.start, PUBLICATION.start + 3)
ROUNDS = 50
ENVS = (
    *("CBO/Dropwave-v0", "CBO/Alpine2-v0", "CBO/Rosenbrock-v0", "CBO/Ackley-v0", "CBO/PSAGraph-Cost-v0"),
    *("CBO/ToyGraph-v0", "CBO/ToyGraph-v0(graph='hidden')", "CBO/PSAGraph-v0", "CBO/CompleteGraph-v0"),
    *("CBO/GPBandit1-v0", "CBO/GPBandit2-v0", "CBO/GPBandit3-v0", "CBO/CCBOSynthetic2-v0", "CBO/DCBOStat-v0"),
    *("CBO/CoCaFig1-v0", "CBO/CoCaAligned-v0", "CBO/PSAContextual2-v0", "CBO/SSEMPeriodic-v0", "CBO/SSEMTanh-v1"),
    *("CBO/IVBandit-v0", "CBO/ParallelBandit-v0", "CBO/Dropwave-Penny-v0", "CBO/Alpine2-Perturb-v0"),
    "CBO/LinearSEMHierarchical5-v0",
)


def play() -> None:
    """Play every agent on every environment; runs that exist are kept."""
    sweep(list(known_agents()), list(ENVS), list(SEEDS), ROOT / "runs" / "agents", horizon=ROUNDS)


def csv_of_board(board: Leaderboard) -> str:
    """Return the content of the file for a leaderboard."""
    rows = board.per_env.select(COLUMNS).filter(pl.col("score").is_not_null()).sort("mode", "env", "agent")
    return f"# {provenance(board)}\n{rows.write_csv(float_precision=6)}"


def write() -> None:
    """Write the file from the published runs of :func:`play`."""
    write_text(RESULTS, csv_of_board(leaderboard(load_published(suite=SUITE))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("what", choices=["play", "write"])
    {"play": play, "write": write}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
