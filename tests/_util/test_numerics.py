"""Agents compute with one thread and ignore underflow, whatever settings the process has otherwise."""

import multiprocessing
import os
from threading import Barrier, Thread
from typing import ClassVar

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from cbo_gym import Agent, Mode, evaluate
from cbo_gym._util.numerics import numerical_settings
from tests.support.agents import Sampler
from tests.support.loop import make, play
from tests.support.studies import fermenter


def threads() -> set[int]:
    pools = (int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas")
    return {torch.get_num_threads(), *pools}


class Watcher(Agent):
    modes = frozenset({Mode.HARD})
    seen: ClassVar[set[int]] = set()

    def act(self, observation):
        Watcher.seen |= threads()
        return self.task.action_space.sample()


def set_threads(number: int) -> None:
    torch.set_num_threads(number)
    # Only the thread that set the number may change it, while it lives.
    setter = Thread(target=threadpool_limits, args=(number, "blas"))
    setter.start()
    setter.join()


@pytest.fixture
def two_threads():
    (before,) = threads()
    set_threads(2)
    yield
    assert threads() == {2}
    set_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_runs_studies_and_loops_of_ones_own_compute_with_one_thread(tmp_path):
    evaluate(Watcher, "CBO/ToyGraph-v0", seed=0, horizon=2)
    assert Watcher.seen == {1}
    Watcher.seen.clear()
    fermenter(tmp_path / "a.db", Watcher()).ask()
    assert Watcher.seen == {1}
    Watcher.seen.clear()
    play(Watcher(), *make("CBO/ToyGraph-v0", 0, rounds=2), seed=0)
    assert Watcher.seen == {1}
    with pytest.raises(ZeroDivisionError), numerical_settings():
        1 / 0  # noqa: B018
    assert threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_several_threads_compute_with_one_thread_each_until_the_last_has_finished():
    both_inside, first_left, seen = Barrier(2), Barrier(2), []

    def compute(leaves_first: bool) -> None:
        with numerical_settings():
            both_inside.wait(10)
            if not leaves_first:
                first_left.wait(10)
                with numerical_settings():
                    seen.append(threads())
        if leaves_first:
            first_left.wait(10)

    workers = [Thread(target=compute, args=(first,)) for first in (True, False)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert seen == [{1}]
    assert threads() == {2}


def rounds_of_mcbo() -> int:
    return len(evaluate("MCBO", "CBO/Alpine2-v0", seed=0, horizon=2).table)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.usefixtures("two_threads")
def test_a_fork_does_not_wait_for_threads_of_its_parent():
    torch.ones(1000, 1000).exp().sum()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(rounds_of_mcbo).get(60) == 2


class Computes(Sampler):
    def __init__(self, function, value):
        self.function, self.value = function, value

    def setup(self, seed):
        self.function(self.value)


def test_agents_ignore_underflow_and_nothing_else():
    task = make("CBO/ToyGraph-v0", 0, 2)[1]
    with np.errstate(all="raise"):
        Computes(np.exp, -1000.0).reset(task, 0)
        for function, value in ((np.exp, 1000.0), (np.log, 0.0), (np.log, -1.0)):
            with pytest.raises(FloatingPointError):
                Computes(function, value).reset(task, 0)
