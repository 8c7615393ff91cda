"""One study, many users: threads, forks, pickles, and what is put in place of its database meanwhile."""

import copy
import multiprocessing
import os
import pickle
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
import torch

from cbo_gym.agents.baselines.random import Random
from cbo_gym.errors import ArgumentTypeError, OperationError
from cbo_gym.study import create_study, load_study
from cbo_gym.study.suggesting import Suggester, agents_lock
from tests.support.studies import FERMENTER, events_of, fermenter, play, simulate
from tests.support.study_kills import replay_log, states

THREADS = 8


# Threads -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("agent", "rounds"), [("Random", 2), pytest.param("GP-UCB", 4, marks=pytest.mark.slow)])
def test_threads_share_a_study(tmp_path, agent, rounds):
    """Each answered call is in the log once, and the log replays."""
    study = fermenter(tmp_path / "f.db", agent=agent)
    ready = threading.Barrier(THREADS)

    def work(index):
        answered = []
        ready.wait()
        for visit in range(rounds):
            trial, lost = study.ask(2)
            titre = trial.number + index / 1000
            study.tell(trial, simulate(trial.do) | {"titre": titre})
            answered += [("asked", trial.number), ("told", trial.number), ("asked", lost.number)]
            assert trial.number in study.to_frame().filter(status="measured")["number"]
            if visit == index % rounds:
                study.correct(trial, simulate(trial.do) | {"titre": titre + 1000.0})
                answered.append(("corrected", trial.number))
                study.add_data([simulate({"ph": 6.0 + titre / 1000.0})], do=[{"ph": 6.0 + titre / 1000.0}])
            study.fail(lost, f"thread {index}")
            answered.append(("failed", lost.number))
            assert set(study.recommendation()) <= {"feed", "ph"}
            assert lost.number not in [one.number for one in study.pending]
            assert len(study.data()) <= study.events
        return answered

    with ThreadPoolExecutor(THREADS) as pool:
        answered = sorted(one for calls in pool.map(work, range(THREADS)) for one in calls)
    events = events_of(tmp_path / "f.db")
    found = [(event.kind, event.payload["trial"]) for event in events if event.kind in ("told", "failed", "corrected")]
    found += [("asked", one["number"]) for event in events if event.kind == "asked" for one in event.payload["trials"]]
    assert sorted(found) == answered
    assert sum(event.kind == "data" for event in events) == THREADS
    assert study.events == len(events)
    assert [entry.number for entry in study.trials] == list(range(1, 2 * THREADS * rounds + 1))
    assert states(load_study(storage=tmp_path / "f.db")) == states(study)
    # The agent of a thread is the one that the log makes.
    again = replay_log(tmp_path / "f.db", tmp_path / "again.db")
    assert states(again) == states(study)
    assert again.ask().do == study.ask().do


class Paused:
    """Lets a thread wait within a method of an agent's keeper; other threads and forks pass."""

    def __init__(self, monkeypatch, method):
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.thread = None
        call = getattr(Suggester, method)

        def slow(suggester, *args):
            answer = call(suggester, *args)
            if threading.current_thread() is self.thread:
                self.begun.set()
                assert self.go_on.wait(60)
            return answer

        monkeypatch.setattr(Suggester, method, slow)

    def run(self, call):
        self.thread = threading.Thread(target=call)
        self.thread.start()
        assert self.begun.wait(60)

    def finish(self):
        self.go_on.set()
        self.thread.join(60)


def test_a_suggestion_blocks_no_other_call(tmp_path, monkeypatch):
    study, undisturbed = (fermenter(tmp_path / f"{name}.db", agent="Random") for name in "fg")
    first = study.ask()
    paused = Paused(monkeypatch, "suggest")
    paused.run(study.ask)
    assert [trial.number for trial in study.pending] == [1]
    study.tell(first, simulate(first.do))
    assert study.to_frame()["status"].to_list() == ["measured"]
    paused.finish()
    first = undisturbed.ask()
    undisturbed.tell(first, simulate(first.do))
    undisturbed.ask()
    assert states(study) == states(undisturbed)  # the suggestion was worked out again, after the outcome


def test_an_agent_that_fails_halfway_is_rebuilt_from_the_log(tmp_path, monkeypatch):
    studies = [fermenter(tmp_path / f"{name}.db", agent="Random") for name in "fg"]
    for study in studies:
        study.ask()
    with monkeypatch.context() as failing:
        failing.setattr(Suggester, "reasons", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            studies[0].ask()
    assert [study.ask().number for study in studies] == [2, 2]
    assert states(studies[0]) == states(studies[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_while_another_thread_thinks(tmp_path, monkeypatch):
    study = fermenter(tmp_path / "f.db", agent="Random")
    expected = [fermenter(tmp_path / "g.db", agent="Random").ask().do]
    paused = Paused(monkeypatch, "suggest")
    paused.run(study.ask)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if [study.ask().do] == expected else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    paused.finish()
    assert [trial.number for trial in study.pending] == [1, 2]


# Pickles -----------------------------------------------------------------------------------------------------


class Own(Random):
    """Holds a thing that may or may not be pickled."""

    def __init__(self, thing=None):
        super().__init__()
        self.thing = thing


def work(study, index):
    trial = study.ask()
    study.tell(trial, simulate(trial.do) | {"titre": float(index)})
    return trial.number


@pytest.mark.parametrize("way", ["pickle", "deepcopy", "copy"])
@pytest.mark.parametrize("agent", ["Random", Own(), Own(lambda: 3)])
def test_a_copy_opens_the_same_database(tmp_path, monkeypatch, agent, way):
    monkeypatch.chdir(tmp_path)
    study = fermenter("f.db", agent=agent)
    assert work(study, 1) == 1
    monkeypatch.chdir("/")
    ways = {"pickle": lambda: pickle.loads(pickle.dumps(study)), "deepcopy": copy.deepcopy, "copy": copy.copy}
    other = ways[way]() if way == "pickle" else ways[way](study)
    assert other is not study
    assert [work(one, 2) for one in (other, study, other)] == [2, 3, 4]
    assert states(other) == states(study)


def torch_threads():
    with agents_lock():
        return torch.get_num_threads()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_agents_compute_with_one_thread_also_in_a_fork():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert torch_threads() == 1
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.apply_async(torch_threads).get(60) == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_pool_of_processes_shares_a_study(tmp_path, method):
    study = fermenter(tmp_path / "f.db", agent="Random")
    study.add_data([simulate({})])
    # Both this process and its forks test the diagram, which is done at every fifth outcome.
    for index in range(5):
        work(study, index)
    study.ask()
    calls = [(study, index) for index in range(5, 11)]
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} here")
    with multiprocessing.get_context(method).Pool(2) as pool:
        numbers = pool.starmap_async(work, calls).get(60)
    assert sorted(numbers) == list(range(7, 13))
    assert sorted(study.data()["titre"].to_list()) == sorted([simulate({})["titre"], *map(float, range(11))])


def test_an_agent_that_cannot_be_pickled_is_named(tmp_path):
    fermenter(tmp_path / "f.db", agent=Own())
    agent = Own()
    study = load_study(storage=tmp_path / "f.db", agent=agent)
    agent.thing = threading.Lock()
    for call in (pickle.dumps, copy.deepcopy):
        with pytest.raises(
            ArgumentTypeError, match=r"'fermenter' cannot be pickled or copied, .* type Own, cannot: .*lock"
        ):
            call(study)


# What is put in place of the database ------------------------------------------------------------------------

CALLS = {
    "trials": lambda study: study.trials,
    "pending": lambda study: study.pending,
    "events": lambda study: study.events,
    "to_frame": lambda study: study.to_frame(),
    "data": lambda study: study.data(),
    "recommendation": lambda study: study.recommendation(),
    "what_if": lambda study: study.what_if({"ph": 6.0}),
    "report": lambda study: study.report("r.html"),
    "ask": lambda study: study.ask(),
    "tell": lambda study: study.tell(1, simulate({})),
    "correct": lambda study: study.correct(1, simulate({})),
    "fail": lambda study: study.fail(2),
    "add_data": lambda study: study.add_data([simulate({})]),
}


def filled(path, rounds=2, **more):
    return play(fermenter(path, agent="Random", **more), rounds)


def backup(path):
    shutil.copy(path.with_name("backup.db"), path)


def edit(path, *strings):
    with closing(sqlite3.connect(path)) as connection, connection:
        for string in strings:
            connection.execute(string)


def another(study):
    """Put the file of another study in the place of the database."""
    return lambda path: study(path.with_name("other.db")).ask() and path.with_name("other.db").replace(path)


def created_again(path):
    edit(path, *(f"DELETE FROM cbo_gym_{table}" for table in ("snapshots", "events", "studies")))
    filled(path)


def backup_that_went_on(path):
    backup(path)
    study = load_study(storage=path)
    study.fail(study.ask())
    study.ask(2)


LAST = "number = (SELECT max(number) FROM cbo_gym_events)"
MISHAPS = {
    "backup": backup,
    "without the last event": lambda path: edit(path, f"DELETE FROM cbo_gym_events WHERE {LAST}"),
    "same number of events": another(lambda path: filled(path, seed=1)),
    "more events": another(lambda path: filled(path, rounds=4)),
    "another name": another(lambda path: create_study("other", storage=path, agent="Random", **FERMENTER)),
    "created again": created_again,
    "backup that went on": backup_that_went_on,
}


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """A study with a backup from before its last two events."""
    monkeypatch.chdir(tmp_path)
    study = filled(tmp_path / "f.db")
    shutil.copy(tmp_path / "f.db", tmp_path / "backup.db")
    study.ask()
    study.tell(study.ask(), simulate({}))
    return study


@pytest.mark.parametrize("mishap", MISHAPS.values(), ids=MISHAPS)
def test_a_database_that_was_replaced_is_noticed_by_every_call(opened, tmp_path, mishap):
    mishap(tmp_path / "f.db")
    before = (tmp_path / "f.db").read_bytes()
    for name, call in CALLS.items():
        with pytest.raises(OperationError, match=r"f\.db: the database was replaced .* load the study again"):
            call(opened)
        assert (tmp_path / "f.db").read_bytes() == before, name
    assert not (tmp_path / "r.html").exists()
    assert load_study(storage=tmp_path / "f.db").ask().number > 0


@pytest.mark.parametrize("rounds", [0, 1])
def test_another_study_in_place_of_one_without_events(tmp_path, rounds):
    study = filled(tmp_path / "f.db", rounds=0)
    filled(tmp_path / "other.db", rounds=rounds)
    (tmp_path / "other.db").replace(tmp_path / "f.db")
    for name in ("ask", "trials", "add_data"):
        with pytest.raises(OperationError, match=r"the database was replaced .*its description is gone or has changed"):
            CALLS[name](study)
    assert load_study(storage=tmp_path / "f.db").events == 2 * rounds


def test_a_database_that_is_put_back_serves_again(opened, tmp_path):
    shutil.copy(tmp_path / "f.db", tmp_path / "kept.db")
    backup(tmp_path / "f.db")
    with pytest.raises(OperationError, match="was replaced"):
        opened.ask()
    shutil.copy(tmp_path / "kept.db", tmp_path / "f.db")
    assert opened.ask().number == 5
    pickled = pickle.dumps(opened)
    created_again(tmp_path / "f.db")
    with pytest.raises(OperationError, match="was replaced"):
        pickle.loads(pickled)


def test_an_agent_that_thought_while_the_database_was_replaced_writes_nothing(opened, tmp_path, monkeypatch):
    paused, errors = Paused(monkeypatch, "suggest"), []

    def ask():
        try:
            opened.ask()
        except OperationError as error:
            errors.append(str(error))

    paused.run(ask)
    backup(tmp_path / "f.db")
    before = (tmp_path / "f.db").read_bytes()
    paused.finish()
    assert "the database was replaced" in errors[0]
    assert (tmp_path / "f.db").read_bytes() == before


@pytest.mark.parametrize("url", [False, True])
def test_a_file_that_is_gone_is_not_made_again(tmp_path, monkeypatch, url):
    monkeypatch.chdir(tmp_path)
    study = filled(tmp_path / "f.db")
    if url:
        study = load_study(storage="sqlite:///f.db")
    (tmp_path / "f.db").rename(tmp_path / "moved.db")
    for name, call in CALLS.items():
        with pytest.raises(OperationError, match=r"f\.db: the file was moved or deleted; put it back"):
            call(study)
        assert [path.name for path in tmp_path.iterdir()] == ["moved.db"], name
    (tmp_path / "moved.db").rename(tmp_path / "f.db")
    assert study.ask().number == 3
