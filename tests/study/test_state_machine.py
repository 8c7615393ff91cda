"""Random sequences of calls of a study, on fresh studies with every kind of agent."""

import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from cbo_gym.errors import CBOGymError
from cbo_gym.study import create_study, load_study
from tests.support.studies import lose_caches
from tests.support.study_laboratory import (
    MODES,
    NODES,
    PAIRS,
    bounds,
    context,
    description,
    everything_set,
    outcome,
    rows,
)

THREADS = 4
QUICK = ("Random", "GP-UCB", "CBO", "CoBO", "GPOO", "TS", "Optuna")
# The agents that take rounds in which a variable was not measured.
TAKES_MISSING = ("Random", "GP-UCB", "MCBO", "EIFN", "EICF", "ConstrainedEI", "Optuna")


class StudyMachine(RuleBasedStateMachine):
    """A laboratory that does all that the guide allows, in any order. Only errors for the user may be raised."""

    pairs = [pair for pair in PAIRS if pair[0] in QUICK]

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "s.db"
        self.study = None

    def teardown(self):
        if self.study is not None:
            self.replays()
        shutil.rmtree(self.folder)

    @initialize(data=st.data(), seed=st.integers(100, 999))
    def create(self, data, seed):
        self.agent, self.mode = data.draw(st.sampled_from(self.pairs))
        self.rng = np.random.default_rng(seed)
        fields = description(self.mode)
        if self.mode == "hard":
            names = data.draw(st.sets(st.sampled_from(["x", "z", "m"]), min_size=1))
            fields["settable"] = {name: (0.0, data.draw(st.sampled_from([0.5, 2.0, 1e3]))) for name in sorted(names)}
            fields["direction"] = data.draw(st.sampled_from(["maximize", "minimize"]))
        self.bounds = fields.get("settable") or bounds(self.mode)
        self.study = create_study("s", storage=self.path, agent=self.agent, seed=seed, horizon=30, **fields)

    def values(self, trial, did=None):
        values = outcome(self.mode, dict(trial.do) | (did or {}), self.rng, trial.context)
        recorded = self.study.trials[trial.number - 1].values
        return {name: values[name] if recorded.get(name) is None else recorded[name] for name in NODES}

    @property
    def running(self):
        return self.study.pending

    @property
    def finished(self):
        return [entry for entry in self.study.trials if entry.status == "told"]

    @rule(kind=st.sampled_from(["observed", "set", "constant"]), count=st.integers(1, 3))
    def add_data(self, kind, count):
        if self.mode == "hard" and kind == "set":
            done = [{name: high for name, (_, high) in self.bounds.items()}] * count
            values = [outcome(self.mode, one, self.rng) for one in done]
        else:
            values, done = rows(self.mode, kind, count, self.rng)
        self.refused_or(lambda: self.study.add_data(values, do=done))

    @rule(count=st.integers(1, 3))
    def ask(self, count):
        trials = self.refused_or(lambda: self.study.ask(count, context=context(self.mode, self.rng)))
        for trial in trials or ():
            for name, value in trial.do.items():
                if name in self.bounds:
                    low, high = self.bounds[name]
                    assert low <= np.min(value) <= np.max(value) <= high

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0), missing=st.booleans())
    def tell(self, which, missing):
        trial = self.running[which % len(self.running)]
        values = self.values(trial)
        if missing and self.agent in TAKES_MISSING:
            del values["m"]
        self.study.tell(trial, values)

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0), names=st.sets(st.sampled_from(NODES), min_size=1), close=st.booleans())
    def tell_a_part(self, which, names, close):
        trial = self.running[which % len(self.running)]
        values = self.values(trial)
        self.study.tell(trial, {name: values[name] for name in names}, final=False)
        if close:
            self.refused_or(lambda: self.study.close(trial))

    @precondition(lambda self: self.running and self.mode not in ("discrete", "aggregated"))
    @rule(which=st.integers(0), excess=st.sampled_from([-1e-7, 1e-7, 2.0]))
    def tell_what_was_done(self, which, excess):
        trial = self.running[which % len(self.running)]
        did = {name: self.bounds[name][1] + excess for name in trial.do}
        self.study.tell(trial, self.values(trial, did), did=did)

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0), reason=st.text(max_size=20), rejected=st.booleans())
    def end_without_outcome(self, which, reason, rejected):
        trial = self.running[which % len(self.running)]
        self.refused_or(lambda: (self.study.reject if rejected else self.study.fail)(trial, reason))

    @rule(excess=st.sampled_from([0.0, 2.0]))
    def register(self, excess):
        do = everything_set(self.mode, self.rng)
        if self.mode in ("hard", "contextual", "soft"):
            do = {name: high + excess for name, (_, high) in self.bounds.items()}
        self.refused_or(lambda: self.study.register(do, context=context(self.mode, self.rng)))

    @precondition(lambda self: self.finished)
    @rule(which=st.integers(0))
    def correct(self, which):
        entry = self.finished[which % len(self.finished)]
        values = dict(entry.values) | {"y": float(np.clip(entry.values["y"] + 1.0, -20.0, 20.0))}
        self.study.correct(entry.number, {name: value for name, value in values.items() if value is not None})

    @rule()
    def use_in_threads(self):
        def work(number):
            trial = self.refused_or(lambda: self.study.ask(context=context(self.mode, np.random.default_rng(number))))
            if trial is not None:
                values = outcome(self.mode, trial.do, np.random.default_rng(number), trial.context)
                self.study.tell(trial, values)
            self.study.to_frame()

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(work, range(THREADS)))

    @rule()
    def look(self):
        seen = context(self.mode, self.rng)
        recommended = self.refused_or(lambda: self.study.recommendation(context=seen))
        if recommended is not None:
            for name, value in recommended.items():
                low, high = self.bounds.get(name, (-np.inf, np.inf))
                assert low <= np.min(value) <= np.max(value) <= high
            self.refused_or(lambda: self.study.what_if(recommended, context=seen))
        self.study.report(self.folder / "s.html")

    @rule(caches=st.booleans())
    def reopen(self, caches):
        if not caches:
            lose_caches(self.path)
        self.study = load_study(storage=self.path)

    def refused_or(self, call):
        """Return what a call returns; None if it is refused in words for a user."""
        try:
            return call()
        except CBOGymError:
            return None

    def replays(self):
        """The log gives the same trials, and the same agent, without any cache."""
        seen = context(self.mode, self.rng)
        wanted = self.refused_or(lambda: self.study.recommendation(context=seen))
        lose_caches(self.path)
        again = load_study(storage=self.path)
        assert again.to_frame().equals(self.study.to_frame())
        assert self.refused_or(lambda: again.recommendation(context=seen)) == wanted


class WholeZoo(StudyMachine):
    pairs = PAIRS


def run(machine, examples, steps):
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.filterwarnings("ignore::cbo_gym.study.diagram_check.DiagramWarning")
def test_a_few_sequences():
    run(StudyMachine, examples=2, steps=8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cbo_gym.study.diagram_check.DiagramWarning")
def test_two_hundred_sequences():
    run(WholeZoo, examples=200, steps=12)


def test_every_mode_is_tried():
    assert {mode for _, mode in StudyMachine.pairs} == set(MODES)
