"""Put results of your own method on a public leaderboard: play a suite, publish the runs, have them checked and ranked.

The method is in this file; yours may be in a package. The example takes some minutes, because the check computes every
number and plays every run again, and lets the method play unseen instances.
"""

import argparse
from pathlib import Path

import numpy as np

from cbo_gym import Agent, Mode, leaderboard, sweep
from cbo_gym.evaluation import load_published, publish
from cbo_gym.evaluation.report.page import write_report
from cbo_gym.evaluation.suites import load
from cbo_gym.referee.submission import check_submission, enter

# The agent is named by its import path, so that other processes find it in this file.
AGENT, SUITE = "submit_results:Nearby", "cbo2020"
CARD = f"""
agent: {AGENT}
suite: {SUITE}
paper: none, an example
code: examples/submit_results.py
contact: me@example.org
hardware: a laptop
installed_by: nothing to install
"""


class Nearby(Agent):
    """Agent that jumps around the best intervention so far, and sometimes to a random one.

    Args:
        step: standard deviation of a jump, in units of the action box.
        elsewhere: how often it plays at random instead, from 0 to 1.
    """

    modes = frozenset({Mode.HARD})

    def __init__(self, step: float = 0.1, elsewhere: float = 0.3) -> None:
        self.step, self.elsewhere = step, elsewhere

    def act(self, observation):
        count = len(self.task.manipulable)
        if not self.history or self.rng.random() < self.elsewhere:
            return {"target": self.rng.integers(len(self.task.targets)), "values": self.rng.random(count)}
        best = self.recommend()
        jump = self.step * self.rng.standard_normal(count)
        return {"target": best["target"], "values": np.clip(np.nan_to_num(best["values"], nan=0.5) + jump, 0.0, 1.0)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 blind seeds on each environment instead of 5")
    parser.add_argument("--out", type=Path, default=Path("runs/submit_results"), help="folder of everything")
    arguments = parser.parse_args()
    out = arguments.out

    suite = load(SUITE)
    print(sweep([AGENT], suite, None, out / "runs"))
    file = publish(out / "runs", out / "submitted", submission=True).path
    (out / "card.yaml").write_text(CARD, encoding="utf-8")

    # The owner of the store runs the following steps on another machine.
    submission = check_submission(file, out / "card.yaml", blind=2 if arguments.quick else 5, allow=[AGENT])
    print(submission.standing, *submission.remarks, *submission.problems, sep="\n  ")
    entered = enter(submission, out / "store" / "nearby.parquet")
    others = [run for run in load_published(SUITE) if suite.counts(run.seed, run.env)]
    board = leaderboard([*load_published(entered.path), *others])
    page = write_report(board, out / "report", formats=())
    print(f"{entered.path} has {entered.added} runs; {page} shows them with the others")


if __name__ == "__main__":
    main()
