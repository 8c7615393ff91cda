"""Auto: the method is chosen by what a task tells, and played as it plays itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
import pytest

from cbo_gym import agents
from cbo_gym.agents.auto.rules import RULES, choices
from cbo_gym.agents.zoo import zoo
from cbo_gym.errors import ArgumentError
from cbo_gym.task import Constraint, Mode, ToldGraph
from tests.agents.helpers import make, play
from tests.registered import ONE_OF_A_KIND

EVIDENCE = Path(__file__).parents[2] / "docs" / "data" / "auto.csv"


def first(env_id: str, **kwargs) -> str:
    return next(choices(make(env_id, 0, 5, **kwargs)[1])).agent


@pytest.mark.parametrize(
    ("env_id", "kwargs", "chosen"),
    [
        ("CBO/Alpine2-v0", {}, "MCBO"),
        ("CBO/Alpine2-v0", {"graph": "hidden"}, "GP-UCB"),
        ("CBO/BinaryTree-v0", {"depth": 6}, "GP-UCB"),  # a model of 127 nodes takes seconds
        ("CBO/ToyGraph-v0", {}, "MCBO"),
        ("CBO/ToyGraph-v0", {"graph": "hidden"}, "CBO-U"),
        ("CBO/CCBOSynthetic2-v0", {}, "ConstrainedEI"),
        ("CBO/CoCaFig1-v0", {}, "CoCaBO"),
        ("CBO/GPBandit1-v0", {}, "GPOO"),
        ("CBO/SSEMTanh-v0", {}, "METS"),
        ("CBO/ParallelBandit-v0", {}, "ParallelBandit"),
        ("CBO/IVBandit-v0", {}, "POMIS-UCB"),
        ("CBO/Ackley-Penny-v0", {}, "CBO-MW"),
        ("CBO/DCBOStat-v0", {}, "ABO"),
    ],
)
def test_the_choice_follows_what_is_told(env_id: str, kwargs: dict, chosen: str) -> None:
    assert first(env_id, **kwargs) == chosen


def test_a_composition_and_constraints_are_made_use_of_without_a_diagram() -> None:
    task = make("CBO/Epidemic-v1", 0, 5)[1]
    hidden = replace(task, graph=ToldGraph(task.graph.nodes))
    assert next(choices(hidden)).agent == "EICF"
    limited = replace(hidden, constraints=(Constraint(task.nodes[0], ">=", 0.0),))
    assert next(choices(limited)).agent == "ConstrainedEI"


def test_slow_methods_give_way_where_seconds_are_few() -> None:
    task = make("CBO/Alpine2-v0", 0, 5)[1]
    assert [next(choices(task, seconds)).agent for seconds in (None, 2.0, 0.5, 0.01)] == [
        "MCBO", "MCBO", "GP-UCB", "Optuna",
    ]  # fmt: skip


def test_it_plays_as_the_method_that_it_chooses() -> None:
    auto = agents.Auto()
    assert auto.chosen is None
    found = []
    for agent in (auto, agents.CBOMW()):
        env, task = make("CBO/Ackley-Penny-v0", 0, 4)
        found.append((*play(agent, env, task, 0), agent.recommend(), agent.estimated_rewards()))
    for own, others in zip(*found, strict=True):
        np.testing.assert_array_equal(own, others)
    assert auto.chosen == "CBO-MW"
    assert auto.why.startswith("it hedges")
    assert len(auto.history) == 4 + len(task.initial_data)
    assert not auto.estimated_violations().any()


@pytest.mark.parametrize("env_id", ONE_OF_A_KIND)
def test_some_method_plays_every_kind_of_task(env_id: str) -> None:
    auto = agents.Auto(seconds=0.31)
    auto.reset(make(env_id, 0, 5)[1], 0)
    assert auto.chosen in zoo()


def test_a_method_that_lacks_what_it_needs_gives_way() -> None:
    auto = agents.Auto()
    auto.reset(make("CBO/ConfoundedBandit-v0", 0, 5)[1], 0)  # POMIS-UCB misses arms
    assert auto.chosen == "UCB"


@pytest.mark.parametrize("seconds", [0, -1.0, np.nan, "fast"])
def test_seconds_are_above_zero(seconds: object) -> None:
    with pytest.raises(ArgumentError, match="seconds"):
        agents.Auto(seconds=seconds)


def test_every_mode_has_a_last_rule_that_asks_for_nothing_and_every_method_exists() -> None:
    assert {rule.agent for rule in RULES} <= set(zoo())
    assert {rule.mode for rule in RULES} == set(Mode)
    for mode in Mode:
        assert [rule for rule in RULES if rule.mode is mode][-1].holds(MappingProxyType({}))


def test_the_published_results_speak_for_the_rules() -> None:
    table = pl.read_csv(EVIDENCE)
    whole, rows = table.filter(pl.col("chosen") == "Auto"), table.filter(pl.col("chosen") != "Auto")
    better = whole.filter(pl.col("score_rival") > pl.col("score_chosen") + 0.01)
    assert better.is_empty(), better
    level = whole.filter(pl.col("score_rival") > pl.col("score_chosen"))
    assert (level["play_chosen"] >= level["play_rival"]).all()
    limits = {(rule.mode.value, rule.agent): rule.seconds for rule in RULES}
    for mode, agent, seconds in rows.select("mode", "chosen", "seconds_chosen").unique().iter_rows():
        assert seconds <= limits[mode, agent]
