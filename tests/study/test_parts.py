"""Outcomes that come in parts, and trials whose reward never comes."""

import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.study import load_study
from tests.support.families import by_family
from tests.support.studies import fermenter, lose_caches, play, simulate

LIMITS = {"constraints": ["biomass >= 1.2"]}
#: Agents with models of nodes, and one that waits for the reward.
AGENTS = ("MCBO", "ConstrainedEI", "cCBO", "GP-UCB")


def begun(path, agent, rounds=5, **more):
    return play(fermenter(path, agent=agent, **(LIMITS if agent in ("ConstrainedEI", "cCBO") else {}), **more), rounds)


def part(trial, *names):
    values = simulate(trial.do)
    return {name: values[name] for name in names}


@pytest.mark.parametrize("agent", by_family(AGENTS))
def test_a_rebuilt_agent_suggests_the_same_while_parts_are_known(agent, tmp_path):
    """Trials are told in parts, out of order, one is closed and one corrected, and the agent is asked in between."""

    def suggestions(path, restarts):
        study = begun(path, agent, 2)

        def current():
            if restarts:
                lose_caches(path)
            return load_study(storage=path) if restarts else study

        first, second, third = current().ask(3)
        current().tell(first, part(first, "biomass"), final=False)
        current().tell(second, {"biomass": 9.0}, final=False)
        asked = [current().ask()]
        current().correct(second, part(second, "biomass"))
        current().tell(third, part(third, "biomass", "titre"), final=False)
        current().close(second, "the sample was lost")
        asked.append(current().ask())
        current().tell(first, part(first, "feed", "ph", "titre"))
        current().tell(third, part(third, "feed", "ph"))
        return [trial.do for trial in [*asked, current().ask()]], current().recommendation(), current().data()

    suggested, recommended, data = suggestions(tmp_path / "a.db", restarts=False)
    again, recommended_again, _ = suggestions(tmp_path / "b.db", restarts=True)
    assert (again, recommended_again) == (suggested, recommended)
    assert data["titre"].null_count() == 1


def test_models_of_variables_learn_from_parts_and_others_wait(tmp_path):
    """A biomass that no mechanism gives moves the model of biomass, and the reward's of no agent."""
    for agent, learns in (("MCBO", True), ("GP-UCB", False)):
        study = begun(tmp_path / f"{agent}.db", agent, 3)
        expected = study.what_if({"feed": 4.0})
        trial = study.register({"feed": 4.0})
        study.tell(trial, {"biomass": 9.0}, final=False)
        informed = study.what_if({"feed": 4.0})
        assert (informed != expected) == learns
        study.close(trial)
        assert study.what_if({"feed": 4.0}) == pytest.approx(informed, rel=1e-6)
        if learns:
            assert informed["biomass"] > expected["biomass"] + 1.0


def test_the_rest_may_follow_and_nothing_recorded_changes_by_itself(tmp_path):
    study = begun(tmp_path / "f.db", "Random")
    trial = study.ask()
    study.tell(trial, {"biomass": 2.1}, final=False)
    study.tell(trial, {"biomass": 2.1, "ph": 6.2}, final=False)
    entry = study.trials[-1]
    assert (entry.status, entry.ended, study.pending[-1].number) == ("partial", "", trial.number)
    assert study.to_frame()["biomass"].to_list()[-1] == study.data()["biomass"].to_list()[-1] == 2.1
    for call, message in (
        (lambda: study.tell(trial, {"biomass": 2.0, "titre": 1.0}), r"recorded as 2.1; given 2; correct\(6, ...\)"),
        (lambda: study.tell(trial, {"feed": 2.0}), "the reward titre is missing; if it follows later"),
        (lambda: study.tell(trial, {}, final=False), "give a value for trial 6"),
        (lambda: study.tell(trial, {"feed": 2.0}, final="no"), "final must be True or False"),
        (lambda: study.reject(trial), "trial 6 is partial, not pending"),
        (lambda: study.close(5), r"trial 5 is measured, not partial; correct\(\)"),
    ):
        with pytest.raises(ArgumentError, match=message):
            call()
    study.correct(trial, {"biomass": 2.2, "titre": 0.8})
    assert study.trials[-1].status == "partial"
    with pytest.raises(ArgumentError, match=r"the reward titre of trial 6 is known; complete the trial: tell\(6, {}\)"):
        study.close(trial)
    study.tell(trial, {"feed": 2.0})
    assert [study.trials[-1].values[name] for name in ("biomass", "titre", "feed")] == [2.2, 0.8, 2.0]
    assert study.trials[-1].status == "measured"
    other = study.ask()
    study.tell(other, {"biomass": 2.0}, final=False)
    study.close(other, "lost")
    assert study.best_trial.number != other.number
    study.correct(other, {"biomass": 2.0, "feed": 2.0, "ph": 6.0, "titre": 99.0})
    assert study.best_trial.number == other.number
    failed = study.ask()
    study.tell(failed, {"biomass": 2.0}, final=False)
    study.fail(failed)
    assert study.to_frame()["status"].to_list()[5:] == ["measured", "measured", "failed"]
    assert len(study.data()) == 7


def test_rows_without_a_reward_are_data_for_models_of_variables(tmp_path):
    rows = [simulate({"feed": feed / 4}) | {"titre": None} for feed in range(20)]
    study = fermenter(tmp_path / "m.db", agent="MCBO")
    assert study.add_data(rows) == 20
    study.tell(study.ask(), simulate({}))
    assert study.what_if({"feed": 1.0})["biomass"] == pytest.approx(simulate({"feed": 1.0})["biomass"], abs=0.05)
    other = fermenter(tmp_path / "n.db", agent="EIFN")
    other.add_data(study.data())
    assert other.what_if({"feed": 1.0})["biomass"] == pytest.approx(simulate({"feed": 1.0})["biomass"], abs=0.05)
    with pytest.raises(ArgumentError, match="row 1: the reward titre is missing, and GP-UCB learns nothing without it"):
        fermenter(tmp_path / "g.db", agent="GP-UCB").add_data(rows)
    with pytest.raises(ArgumentError, match="row 1: nothing was measured"):
        study.add_data([{"titre": None}])
