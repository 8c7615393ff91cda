"""Trials of the user's own choice, and suggestions that are refused."""

from shutil import copyfile

import numpy as np
import pytest

from cbo_gym.agents.baselines.random import Random
from cbo_gym.errors import ArgumentError
from cbo_gym.study import create_study, load_study
from tests.support.families import by_family, one_mode_each
from tests.support.studies import DOSING, FERMENTER, lose_caches, simulate
from tests.support.study_laboratory import PAIRS, PARAMETERS, context, description, everything_set, outcome


def played(tmp_path, agent, mode, rounds=2):
    rng = np.random.default_rng(100)
    study = create_study("s", storage=tmp_path / "s.db", agent=agent, horizon=12, **description(mode))
    for _ in range(rounds):
        seen = context(mode, rng)
        trial = study.ask(context=seen)
        study.tell(trial, outcome(mode, trial.do, rng, seen))
    return study, rng


@pytest.mark.parametrize(("agent", "mode"), one_mode_each(PAIRS))
def test_every_agent_learns_from_a_registered_trial(agent, mode, tmp_path):
    study, rng = played(tmp_path, agent, mode, rounds=0)
    seen = context(mode, rng)
    trial = study.register(everything_set(mode, rng), context=seen)
    assert trial.why == "your own choice"
    assert [pending.number for pending in study.pending] == [trial.number]
    study.tell(trial, outcome(mode, trial.do, rng, seen))
    trial = study.ask(context=context(mode, rng))
    study.tell(trial, outcome(mode, trial.do, rng, trial.context))
    assert study.data().height == 2
    seen = context(mode, rng)
    recommended = study.recommendation(context=seen)
    lose_caches(tmp_path / "s.db")
    assert load_study(storage=tmp_path / "s.db").recommendation(context=seen) == recommended


@pytest.mark.parametrize("end", ["reject", "fail"])
def test_suggestions_avoid_what_was_rejected_or_failed(tmp_path, end):
    study, rng = played(tmp_path, "GP-UCB", "soft", rounds=6)
    suggested = study.ask()
    getattr(study, end)(suggested, "too hot for the pump")
    other = study.ask()
    distance = max(abs(other.do[name] - suggested.do[name]) for name in other.do)
    assert distance > 0.05
    status = f"{end}ed"
    assert [entry.status for entry in study.trials[-2:]] == [status, "pending"]
    assert study.trials[-2].reason == "too hot for the pump"
    with pytest.raises(ArgumentError, match=f"trial 7 is {status}, not pending"):
        study.tell(suggested, outcome("soft", suggested.do, rng))
    assert study.to_frame()["status"].to_list().count(status) == 1
    assert study.data().height == 6  # nothing is learned from it


class Counting(Random):
    """Keeps the number of pending trials at each suggestion that has some."""

    def setup(self, seed):
        super().setup(seed)
        self.pending = []

    def act_given_pending(self, observation, pending, count, **more):
        self.pending.append(len(pending))
        return super().act_given_pending(observation, pending, count, **more)


def test_trials_without_a_result_count_until_the_next_outcome(tmp_path):
    study = create_study("s", storage=tmp_path / "s.db", **FERMENTER | {"agent": Counting()})
    study.reject(study.ask(), "too hot")
    study.fail(study.ask(), "the pump broke")
    trial = study.ask()
    study.tell(trial, simulate(trial.do))
    other = study.ask()
    study.tell(other, simulate(other.do))
    study.ask()
    study.ask()
    assert study.agent_snapshot()[1].pending == [1, 2, 1]
    # A withdrawn outcome counts once, also when the agent learns again from the log.
    study.fail(other, "the probe was dirty")
    study.ask()
    assert study.agent_snapshot()[1].pending[-1] == 3


def test_a_registered_trial_may_lie_outside_the_bounds(tmp_path):
    study, rng = played(tmp_path, "GP-UCB", "soft")
    trial = study.register({"a": 3.0, "b": 0.0})  # a may be at most 2
    assert study.ask().do["a"] <= 2.0
    study.tell(trial, outcome("soft", trial.do, rng))
    assert study.data()["do(a)"].to_list()[-1] == 3.0


@pytest.mark.parametrize(
    ("mode", "do", "given", "message"),
    [
        ("soft", {"c": 1.0}, None, "'c' cannot be set"),
        ("soft", {"a": np.inf}, None, "the value of a must be a finite number"),
        ("discrete", {"x": 0.5}, None, "is not one of the 5 arms"),
        ("contextual", {"m": 1.0}, None, r"the context must give a number for each of \['x'\]"),
        ("aggregated", {"a": [0.0, 1.0]}, None, "give an interval for each parameter"),
    ],
)
def test_what_cannot_be_done_is_not_registered(mode, do, given, message, tmp_path):
    study = create_study("s", storage=tmp_path / "s.db", agent="Random", **description(mode))
    with pytest.raises(ArgumentError, match=message):
        study.register(do, context=given)
    assert study.events == 0


@pytest.mark.parametrize(
    "agent", by_family([agent for agent, mode in PAIRS if mode == "hard" and agent != "LearnedGraph"])
)
@pytest.mark.parametrize("targets", [[["feed", "ph"]], [["feed", "light", "ph"], ["ph"], ["feed", "light"]]])
def test_without_the_empty_set_no_agent_only_observes(agent, targets, tmp_path):
    """Light does not act on the titre, so that its sets are not minimal; nothing is known at first."""
    system = FERMENTER | {
        "diagram": "dag { feed -> biomass -> titre; ph -> titre; feed <-> titre; light -> heat }",
        "settable": FERMENTER["settable"] | {"light": (0.0, 1.0)},
    }
    study = create_study("s", storage=tmp_path / "s.db", agent=agent, targets=targets, **system)
    for count in (2, 1, 2):
        for trial in study.ask(count):
            assert sorted(trial.do) in targets
            study.tell(trial, {**simulate(trial.do), "light": trial.do.get("light", 0.5), "heat": 1.0})
    assert sorted(study.recommendation()) in targets


def test_a_graph_cannot_be_learned_without_observations(tmp_path):
    pytest.importorskip("causallearn")
    with pytest.raises(ArgumentError, match="LearnedGraph learns the graph from rounds that only observe"):
        create_study("s", storage=tmp_path / "s.db", agent="LearnedGraph", targets=[["ph"]], **FERMENTER)


STEERABLE = ("Random", "GP-UCB", "CBO", "MCBO", "EIFN", "ConstrainedEI", "cCBO", "Optuna", "Auto")
# The agent that Auto chooses there cannot keep values.
STEERED = [
    (a, m)
    for a, m in PAIRS
    if a in STEERABLE and m in ("hard", "soft", "contextual") and (a, m) != ("Auto", "contextual")
]


@pytest.mark.parametrize(("agent", "mode"), one_mode_each(STEERED))
def test_trials_keep_fixed_and_shared_values(agent, mode, tmp_path):
    study, rng = played(tmp_path, agent, mode, rounds=0)
    name = study.settable[0]
    value = 0.25 * sum(study.interface.codec.domains.intervals[0])
    seen = context(mode, rng)
    trial = study.ask(context=seen, fixed={name: value})
    assert trial.do[name] == pytest.approx(value)
    study.tell(trial, outcome(mode, trial.do, rng, seen))
    assert study.ask(context=seen, fixed={name: value}).do[name] == pytest.approx(value)
    together = study.ask(3, context=seen, shared=[name])
    assert len({trial.do[name] for trial in together}) == 1
    for trial in together:
        study.tell(trial, outcome(mode, trial.do, rng, seen))
    seen = context(mode, rng)
    lose_caches(copyfile(tmp_path / "s.db", tmp_path / "copy.db"))
    again = load_study(storage=tmp_path / "copy.db")
    assert again.recommendation(context=seen) == study.recommendation(context=seen)
    assert again.ask(context=seen) == study.ask(context=seen)


@pytest.mark.parametrize(
    ("agent", "mode", "steering", "message"),
    [
        ("GP-UCB", "soft", {"fixed": {"q": 1.0}}, "'q' cannot be set"),
        ("GP-UCB", "soft", {"fixed": {"a": 9.0}}, "a must be from -?[0-9]+ to 2; given 9"),
        ("GP-UCB", "soft", {"fixed": {"a": "x"}}, "the value of a must be a finite number"),
        ("GP-UCB", "soft", {"fixed": 3}, "fixed must be a mapping"),
        ("CEO", "hard", {"shared": "x"}, "CEO cannot keep values in this study; ask without fixed and"),
        (
            "Auto",
            "contextual",
            {"shared": "m"},
            "Auto cannot keep values in this study; .* or choose GP-UCB, Optuna or Random",
        ),
        ("Random", "aggregated", {"fixed": {"a": [0.0, 0.5]}}, "values can be fixed in soft, hard and contextual mode"),
        ("TS", "discrete", {"fixed": {"x": 0.5}}, "values can be fixed in soft, hard and contextual mode alone"),
    ],
)
def test_what_cannot_be_kept_is_refused(agent, mode, steering, message, tmp_path):
    study, _ = played(tmp_path, agent, mode, rounds=0)
    with pytest.raises(ArgumentError, match=message):
        study.ask(2, context=context(mode, np.random.default_rng(100)), **steering)
    assert study.events == 0


def test_fixed_values_must_fit_sets_and_limits(tmp_path):
    fields = FERMENTER | {"targets": [["ph"], ["feed"]], "agent": "Random"}
    study = create_study("s", storage=tmp_path / "s.db", **fields)
    with pytest.raises(
        ArgumentError, match=r"none of the targets sets ph, feed within the limits; the targets are \{ph\}"
    ):
        study.ask(fixed={"ph": 6.0, "feed": 1.0})
    assert list(study.ask(fixed={"ph": 6.0}).do.items()) == [("ph", pytest.approx(6.0))]
    limited = create_study(
        "t", storage=tmp_path / "t.db", limits=["feed >= 2 * ph - 9"], **FERMENTER | {"agent": "Random"}
    )
    with pytest.raises(ArgumentError, match="none of the targets sets"):
        limited.ask(fixed={"ph": 7.3, "feed": 2.0})
    assert limited.ask(fixed={"ph": 6.5}, shared=["feed"]).do["feed"] >= 4.0


@pytest.mark.parametrize("agent", by_family([a for a, m in PAIRS if m == "soft" and a in STEERABLE]))
def test_data_may_change_more_parameters_than_a_trial(agent, tmp_path):
    parameters = {name: {**parameter, "null": 0.0} for name, parameter in PARAMETERS.items()}
    fields = description("soft") | {"parameters": parameters, "options": {"max_interventions": 1}, "agent": agent}
    study, rng = create_study("s", storage=tmp_path / "s.db", **fields), np.random.default_rng(100)
    done = [{"a": 1.5, "b": -0.5}, {"a": 0.5, "b": 0.25}]
    study.add_data([outcome("soft", do, rng) for do in done], do=done)
    trials = [study.ask(), study.ask()]
    for do in (*(trial.do for trial in trials), study.recommendation()):
        assert sum(value != 0.0 for value in do.values()) <= 1


def test_agents_that_keep_values_are_those_of_the_mode(tmp_path):
    study = create_study("doses", storage=tmp_path / "a.db", agent="CoBO", **DOSING)
    with pytest.raises(ArgumentError, match=r"choose Auto, GP-UCB, Optuna or Random$"):
        study.ask(context={"age": 40.0}, fixed={"dose": 0.5})
