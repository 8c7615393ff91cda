"""Claims of papers, judged by differences that are known."""

from dataclasses import replace

import numpy as np
import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation import evaluate
from cbo_gym.evaluation.claims.judging import Claim, Rules, correct_together, judge, none_dominates
from cbo_gym.evaluation.metrics.gap import gaps_of
from tests.support.runs import made_up_run

ENV = "CBO/Dropwave-v0"
KINDS = ("better", "as good", "equivalent")


def runs(agent, values, env=ENV, rounds=3):
    """Of rewards that are the same in all rounds; optimum 1, random value 0."""
    return [made_up_run(agent, seed, [value] * rounds, env) for seed, value in enumerate(values)]


def only(claim, given):
    (found,) = judge(claim, given)
    return found


def test_a_difference_that_the_interval_bears_is_confirmed_or_refuted():
    given = runs("A", [0.5, 0.6, 0.7] * 4) + runs("B", [0.3, 0.4, 0.4] * 4)
    found = only(Claim(better="A", worse="B", envs=[ENV]), given)
    assert found.verdict == "confirmed"
    assert found.difference == pytest.approx(np.mean([0.2, 0.2, 0.3, 0.2, 0.2, 0.3, 0.2, 0.2, 0.3, 0.2]))
    assert 0.0 < found.low < found.difference < found.high
    assert (found.pairs, found.rounds) == (10, 3)  # of twelve: those after the tenth are not looked at
    assert only(Claim(better="B", worse="A", envs=[ENV]), given).verdict == "refuted"


def test_what_is_not_clear_stays_open():
    claim = Claim(better="A", worse="B", envs=[ENV])
    assert only(claim, runs("A", [0.5, 0.3] * 5) + runs("B", [0.3, 0.6] * 5)).verdict == "open"
    few = only(claim, runs("A", [0.5] * 9) + runs("B", [0.3] * 9))
    assert (few.verdict, few.pairs, few.p_value) == ("open", 9, 1.0)


def test_a_tie_is_a_verdict_and_as_good_as_is_not_better():
    given = runs("A", [0.5, 0.505] * 5) + runs("B", [0.5] * 10)
    verdicts = {kind: only(Claim(better="A", worse="B", envs=[ENV], kind=kind), given).verdict for kind in KINDS}
    assert verdicts == {"better": "equivalent", "as good": "confirmed", "equivalent": "confirmed"}
    worse = runs("A", [0.4, 0.45] * 5) + runs("B", [0.5] * 10)
    verdicts = {kind: only(Claim(better="A", worse="B", envs=[ENV], kind=kind), worse).verdict for kind in KINDS}
    assert verdicts == dict.fromkeys(KINDS, "refuted")
    strict = Claim(better="A", worse="B", envs=[ENV], rules=Rules(margin=0.0))
    assert only(strict, given).verdict == "confirmed"


def test_an_early_look_decides_only_what_is_plain():
    claim = Claim(better="A", worse="B", envs=[ENV], rules=Rules(pairs=20, first_look=10))
    plain = only(claim, runs("A", [0.8, 0.9] * 10) + runs("B", [0.1] * 20))
    assert (plain.verdict, plain.pairs) == ("confirmed", 10)
    unsure = runs("A", [0.5, 0.2] * 10) + runs("B", [0.3, 0.25, 0.1, 0.2] * 5)
    assert only(claim, unsure[:10] + unsure[20:30]).verdict == "open"
    found = only(claim, unsure)
    assert (found.verdict, found.pairs) == ("confirmed", 20)
    assert only(Claim(better="A", worse="B", envs=[ENV], rules=Rules(pairs=20)), unsure).p_value < found.p_value


def test_judged_together_a_claim_needs_more():
    envs = ["CBO/Alpine2-v0", *(f"CBO/Dropwave-v0(seed={i})" for i in range(4))]
    given = [run for env in envs for run in runs("B", [0.2] * 10, env)] + runs("A", [0.9, 0.8] * 5, envs[0])
    given += [run for env in envs[1:] for run in runs("A", [0.4, 0.2] * 5, env)]
    found = correct_together(judge(Claim(better="A", worse="B", envs=envs), given))
    assert [one.verdict for one in found] == ["confirmed"] * 5
    assert [one.corrected for one in found] == ["confirmed"] + ["open"] * 4


def test_only_runs_with_the_same_environment_rounds_and_seed_are_compared():
    claim = Claim(better="A", worse="B", envs=[ENV, "CBO/Alpine2-v0"], after=3)
    given = runs("A", [0.9, 0.8] * 5) + runs("B", [0.1], rounds=2) + runs("B", [0.5, 0.5] * 5)
    given += [replace(run, batch=2) for run in runs("A", [0.1] * 10)]
    first, second = judge(claim, given)
    assert (first.verdict, first.pairs) == ("confirmed", 10)
    assert (second.verdict, second.pairs, second.rounds) == ("not run", 0, 0)
    fewer = only(Claim(better="A", worse="B", envs=[ENV], after=100), given)
    assert fewer.rounds == 3
    assert only(Claim(better="A", worse="C", envs=[ENV]), given).verdict == "not run"


def test_a_missing_recommendation_is_an_error_that_says_so():
    given = [evaluate("Random", ENV, 0, horizon=4, recommend="powers", label=label) for label in "AB"]
    claim = Claim(better="A", worse="B", envs=[ENV], by="simple_regret", after=3)
    said = "B on CBO/Dropwave-v0, seed 0, has no simple_regret after 3 of its 4 rounds.*recommend='powers'.*'every'"
    with pytest.raises(ArgumentError, match=said):
        judge(claim, given)
    assert only(claim.model_copy(update={"after": None}), given).rounds == 4
    assert only(claim.model_copy(update={"by": "average_regret"}), given).rounds == 3


def test_instances_of_a_family_are_judged_together_and_parameters_tell_agents_apart():
    envs = [f"CBO/SSEMPeriodic-v1(instance_seed={i})" for i in range(10)]
    given = [run for i, env in enumerate(envs) for run in runs("A(b=1)", [0.8 + i / 100], env)]
    given += [run for env in envs for run in runs("A", [0.4], env)]
    claim = Claim(better="A(b=1)", worse="A", envs=["CBO/SSEMPeriodic-v1(instance_seed=*)"], after=2)
    found = only(claim, given)
    assert (found.verdict, found.pairs, found.rounds) == ("confirmed", 10, 2)


def test_methods_with_different_knowledge_of_a_system_are_paired_by_seed():
    partial, wrong = f"{ENV}(graph='partial')", f"{ENV}(graph='wrong', graph_missing=[['a', 'b']])"
    given = runs("A", [0.8, 0.82] * 5, partial) + runs("B", [0.5] * 10, wrong) + runs("B", [0.95, 0.99] * 5, partial)
    found = only(Claim(better="A", worse="B", envs=[partial], worse_env=wrong), given)
    assert (found.verdict, found.pairs) == ("confirmed", 10)
    assert found.difference == pytest.approx(0.31)
    assert only(Claim(better="A", worse="B", envs=[partial]), given).difference < 0


def test_of_two_patterns_those_with_the_same_in_place_of_the_star_are_paired_and_settings_are_no_units():
    env = "CBO/GPBandit1-v0(arity={}, points={})"
    given = [run for s, value in ((1, 0.5), (10, 0.8)) for run in runs("A", [value] * 2, env.format(3, s))]
    given += [run for s, value in ((10, 0.7), (1, 0.3)) for run in runs("A", [value] * 2, env.format(2, s))]
    given += runs("A", [0.1] * 2, env.format(2, 20))
    found = only(Claim(better="A", worse="A", envs=[env.format(3, "*")], worse_env=env.format(2, "*")), given)
    assert found.pairs == 2  # seeds, each a mean over the two settings
    assert found.difference == pytest.approx(0.15)


def test_over_time_a_claim_is_judged_by_the_gap_of_all_slices():
    one, other = (evaluate("Random", "CBO/DCBOStat-v0", seed, recommend="end") for seed in range(2))
    claim = Claim(better="Random", worse="A", envs=["CBO/DCBOStat-v0"], by="missing_gap_over_time")
    found = only(claim, [one, replace(other, agent="A", seed=0)])
    assert found.difference == pytest.approx(gaps_of(one)["gap_over_time"] - gaps_of(other)["gap_over_time"])


def test_that_no_method_dominates_is_refuted_by_one_that_does():
    other = "CBO/Alpine2-v0"
    mixed = [
        run
        for a, b, env in ((0.9, 0.5, ENV), (0.3, 0.6, other))
        for run in runs("A", [a, a + 0.02] * 5, env) + runs("B", [b + 0.02, b] * 5, env)
    ]
    best = [*mixed, *runs("C", [0.95] * 10, ENV), *runs("C", [0.9] * 10, other)]

    def judged(agents, given):
        return none_dominates(agents, [ENV, other], "average_regret", Rules(), given)

    assert judged(["A", "B"], mixed).verdict == "confirmed"
    found = judged(["A", "B", "C"], best)
    assert (found.verdict, found.pairs, found.rounds) == ("refuted", 10, 3)
    assert 0.0 < found.p_value < 0.05
    assert judged(["A", "B", "C"], mixed).verdict == "open", "nothing is known of C"
    nothing = judged(["A", "B"], [])
    assert (nothing.verdict, nothing.pairs) == ("not run", 0)


def test_that_no_method_dominates_is_one_claim_of_all_that_are_judged_together():
    given = runs("A", [0.5, 0.6] * 5) + runs("B", [0.45, 0.5, 0.46, 0.53, 0.38, 0.52, 0.44, 0.54, 0.4, 0.52])
    dominance = none_dominates(["A", "B"], [ENV], "average_regret", Rules(), given)
    (claim,) = judge(Claim(better="A", worse="B", envs=[ENV]), given)
    assert dominance.verdict == "refuted"
    assert dominance.p_value == pytest.approx(claim.p_value, rel=1e-3), "of one comparison"
    one, other = replace(dominance, p_value=0.01), replace(claim, p_value=0.9)
    assert [found.corrected for found in correct_together([one, other])] == ["refuted", "open"]
    assert correct_together([one, *[other] * 5])[0].corrected == "open"
