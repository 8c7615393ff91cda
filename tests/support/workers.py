"""Worker processes that the default tests share, because starting Python with its libraries takes two seconds."""

import os
import sys
from functools import cache
from pathlib import Path

from cbo_gym._util.processes.worker import NO_LIMITS, Worker
from cbo_gym.evaluation.play.players import MAKING_SECONDS, describe_isolated

MOST_IDLE = 3
IDLE = []


class SharedWorker:
    """A worker that leaves its process, if the last call returned, to a later worker of the same kind."""

    def __init__(self, limits=NO_LIMITS, **options):
        variables = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        self.kind = (limits, options, list(sys.path), Path.cwd(), variables)
        kept = next((pair for pair in IDLE if pair[0] == self.kind), None)
        if kept:
            IDLE.remove(kept)
        self.worker = kept[1] if kept else Worker(limits, **options)
        self.returned = True

    def call(self, *arguments, **options):
        self.returned = False
        answer = self.worker.call(*arguments, **options)
        self.returned = True
        return answer

    def close(self):
        if self.returned:
            IDLE.append((self.kind, self.worker))
        else:
            self.worker.close()
        while len(IDLE) > MOST_IDLE:
            IDLE.pop(0)[1].close()


describe_once = cache(describe_isolated)


def describe(agent, seconds=MAKING_SECONDS):
    """Describe an agent; an agent of the tests only once."""
    return (describe_once if str(agent).startswith("tests.support.") else describe_isolated)(agent, seconds)


def close_idle():
    while IDLE:
        IDLE.pop()[1].close()
