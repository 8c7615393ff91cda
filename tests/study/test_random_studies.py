"""Random studies: refusals are in words, and the log alone gives the next suggestion, recommendation and tables."""

import re
import shutil

import numpy as np
import pytest
from polars.testing import assert_frame_equal

from cbo_gym.errors import CBOGymError
from cbo_gym.study import create_study, load_study
from cbo_gym.study.suggesting import AgentError
from tests.support.studies import lose_caches
from tests.support.study_laboratory import MODES, PAIRS, context, description, everything_set, outcome

FEW = [*(("Random", mode) for mode in MODES), ("Optuna", "hard"), ("Optuna", "soft"), ("TS", "discrete")]
MANY = [(*PAIRS[index % len(PAIRS)], 200 + index) for index in range(300)]
#: step -> weight
STEPS = {
    "ask": 5,
    "steer": 3,
    "register": 1,
    "tell": 6,
    "part": 3,
    "end": 2,
    "correct": 2,
    "withdraw": 1,
    "reopen": 1,
    "replay": 1,
}
ENDS = ("fail", "reject", "close")


class RandomStudy:
    """A study that a laboratory uses at random."""

    def __init__(self, agent, mode, seed, folder):
        self.mode, self.folder, self.rng = mode, folder, np.random.default_rng([seed, *map(ord, agent + mode)])
        self.fields = {"agent": agent, "seed": seed, "horizon": 20, **description(mode)}
        self.study = create_study("s", storage=folder / "s.db", **self.fields)

    def attempt(self, call):
        """Return the answer of a call; None if it is refused with a message for users."""
        try:
            return call()
        except AgentError:
            raise
        except CBOGymError as error:
            self.refusal = str(error)
            assert len(self.refusal) > 15
            assert not re.search("object at 0x|Traceback", self.refusal)

    def context(self):
        return context(self.mode, self.rng)

    def pick(self, *statuses):
        entries = [entry for entry in self.study.trials if entry.status in statuses]
        return entries[self.rng.integers(len(entries))] if entries else None

    def measured(self, entry):
        """Return an outcome that does not contradict what was recorded."""
        do = self.study.units.native_values(self.study.units.from_flat(entry.action))
        values = outcome(self.mode, do, self.rng, entry.context)
        return values | {name: value for name, value in entry.values.items() if value is not None}

    def rebuilt(self):
        """Return the study from a copy of the log, without any cache."""
        copy = self.folder / "copy.db"
        copy.unlink(missing_ok=True)
        shutil.copy(self.folder / "s.db", copy)
        lose_caches(copy)
        return load_study(storage=copy)

    def steer(self):
        """Ask for trials with a value that is fixed, or that they share."""
        name, value = next(iter(everything_set(self.mode, self.rng).items()))
        steering = {"fixed": {name: value}} if self.rng.random() < 0.5 else {"shared": [name]}
        trials = self.attempt(lambda: self.study.ask(2, context=self.context(), **steering))
        for trial in trials or ():
            assert trial.do[name] == pytest.approx(steering.get("fixed", trials[0].do)[name])

    def replay(self):
        seen, studies = self.context(), (self.study, self.rebuilt())
        assert_frame_equal(studies[0].to_frame(), studies[1].to_frame())
        for call in ("recommendation", "ask"):
            first, second = (self.attempt(lambda s=s, call=call: getattr(s, call)(context=seen)) for s in studies)
            assert first == second

    def step(self, name):
        running, study = self.pick("pending", "partial"), self.study
        if name in ("steer", "replay"):
            getattr(self, name)()
        elif name == "reopen":
            self.study = load_study(storage=self.folder / "s.db")
        elif name == "register":
            self.attempt(lambda: study.register(everything_set(self.mode, self.rng), context=self.context()))
        elif name == "correct" and (entry := self.pick("measured", "partial", "closed", "failed")):
            self.attempt(lambda: study.correct(entry.number, outcome(self.mode, {}, self.rng, entry.context)))
        elif name == "withdraw" and (entry := self.pick("measured", "closed")):
            self.attempt(lambda: study.fail(entry.number))
        elif name in ("tell", "part", "end") and running:
            values = self.measured(running)
            std = {"y": 0.1} if self.rng.random() < 0.2 else None
            if name == "tell":
                self.attempt(lambda: study.tell(running.number, values, std=std))
            elif name == "part":
                self.attempt(lambda: study.tell(running.number, {"m": values["m"]}, final=False))
            else:
                self.attempt(lambda: getattr(study, self.rng.choice(ENDS))(running.number))
        else:
            self.attempt(lambda: study.ask(int(self.rng.integers(1, 4)), context=self.context()))

    def import_again(self):
        """Assert that a new study takes all rounds from the table, and then has the same table."""
        if (data := self.study.data()).height:
            other = create_study("t", storage=self.folder / "t.db", **self.fields)
            if self.attempt(lambda: other.add_data(data)) is None:
                assert re.search("(is|are) missing, and", self.refusal), self.refusal
            else:
                assert_frame_equal(other.data(), data, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.filterwarnings("ignore::cbo_gym.study.diagram_check.DiagramWarning")
@pytest.mark.filterwarnings("ignore::cbo_gym.study.campaigns.UnusedDataWarning")
@pytest.mark.parametrize(
    ("agent", "mode", "seed"),
    [*((*pair, 100) for pair in FEW), *(pytest.param(*case, marks=pytest.mark.slow) for case in MANY)],
)
def test_the_log_replays_after_any_steps(agent, mode, seed, tmp_path):
    study = RandomStudy(agent, mode, seed, tmp_path)
    weights = np.array(list(STEPS.values())) / sum(STEPS.values())
    for name in ["ask", *study.rng.choice(list(STEPS), 12, p=weights)]:
        study.step(name)
    study.replay()
    study.import_again()
