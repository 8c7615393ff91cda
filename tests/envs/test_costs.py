"""Costs of acting: what is paid in each mode, who knows them, what curves and CBO make of them."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import polars as pl
import pytest
from gymnasium.vector.utils import concatenate, create_empty_array

from cbo_gym import evaluate, leaderboard, make_task
from cbo_gym.actions import Costs
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.envs import oracle_of
from cbo_gym.envs.making import make_env
from cbo_gym.envs.registry import find_entry
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.report import plots
from cbo_gym.evaluation.report.contents import report_of
from cbo_gym.evaluation.report.curves import CostPaid
from cbo_gym.evaluation.report.tables import env_table
from cbo_gym.evaluation.runs.results import load_run, save_run
from cbo_gym.problems import build_problem
from tests.support.loop import reset
from tests.support.runs import choosing_run, made_up_run

TOY, PSA, COMPLETE = "CBO/ToyGraph-v0", "CBO/PSAGraph-v0", "CBO/CompleteGraph-v0"
ALPINE2, CELLS, ARMS, MASKED = (
    "CBO/Alpine2-v0",
    "CBO/Alpine2-Aggregated-v0",
    "CBO/ParallelBandit-v0",
    "CBO/SSEMPeriodic-v1",
)
CONTEXTUAL = "CBO/CoCaFig1-v0"
PAPER = {"variables": {"X0": 1.0, "X1": 10.0}, "per_unit": {"X0": 1.0, "X1": 1.0}}


def paid(env_id, action, **keywords):
    return reset(gym.make(env_id, **keywords)).step(action)[4]["cost"]


def setting(target, **native):
    """A hard action on ToyGraph: the target's place, and native values."""
    domains = {"X0": (-5.0, 5.0), "X1": (-5.0, 20.0)}
    unit = [(native.get(name, low) - low) / (high - low) for name, (low, high) in domains.items()]
    return {"target": target, "values": unit}


@pytest.mark.parametrize(
    ("costs", "action", "cost"),
    [
        ({"X0": 1, "X1": 4}, setting(2, X1=3.0), 4.0),
        (PAPER, setting(1, X0=-3.0), 1.0 + 3.0),
        (PAPER, setting(2, X1=-2.5), 10.0 + 2.5),
        ({**PAPER, "reference": {"X1": 7.5}}, setting(2, X1=10.0), 10.0 + 2.5),
        ({"base": 2, "observed": {"X0": 0.5, "Y": 0.25}}, setting(2), 2.75),
        ({"sets": {"X0": 5, ("X1",): 6}}, setting(2), 6.0),
    ],
)
def test_what_setting_variables_costs_by_hand(costs, action, cost):
    assert paid(TOY, action, costs=costs) == pytest.approx(cost)


def test_a_set_may_have_its_own_price_instead_of_the_sum():
    task = make_task(gym.make(PSA), 0)
    both = {"target": task.targets.index(frozenset({"Aspirin", "Statin"})), "values": [0.5, 0.25]}
    prices = {"Aspirin": 2.0, "Statin": 3.0}
    assert paid(PSA, both, costs=prices) == 5.0
    assert paid(PSA, both, costs={"variables": prices, "sets": {"Statin, Aspirin": 4.0}}) == 4.0
    units = {"variables": prices, "sets": {"Aspirin,Statin": 4.0}, "per_unit": {"Statin": 8.0}}
    assert paid(PSA, both, costs=units) == pytest.approx(4.0 + 8.0 * 0.25)
    costs = Costs(base=2, variables={"A": 1}, sets={"A, B": 3}, per_unit={"A": 0.5, "B": 4}, reference={"A": -1})
    assert costs.describe() == ["a round 2", "A 1", "{A, B} 3", "0.5 a unit of A from -1", "4 a unit of B"]
    assert Costs(observed={"Y": 0.1}).describe() == ["seeing Y 0.1"]


def test_soft_parameters_cost_by_their_change_from_null():
    task = make_task(gym.make(ALPINE2), 0)
    null = np.array(task.null_action)
    low, high = task.action_domains[3]
    costs = {"base": 1.0, "variables": {"X0": 2.0, "a3": 3.0}, "per_unit": {"a3": 0.5}}
    assert paid(ALPINE2, null, costs=costs) == 1.0
    (first,) = task.action_nodes["X0"]
    moved = null.copy()
    moved[first] += 0.25
    assert paid(ALPINE2, moved, costs=costs) == 1.0 + 2.0
    moved[3] += 0.25
    assert paid(ALPINE2, moved, costs=costs) == pytest.approx(6.0 + 0.5 * 0.25 * (high - low))
    centre = np.stack([moved - 0.125, moved + 0.125])  # a cell costs what its centre does
    assert paid(CELLS, centre, costs=costs) == pytest.approx(6.0 + 0.5 * 0.25 * (high - low))


def test_super_arms_cost_their_base_arms():
    task = make_task(gym.make(MASKED), 0)
    arm = np.zeros(len(task.action_names), dtype=np.int8)
    arm[[0, 2]] = 1
    owner = next(node for node, own in task.action_nodes.items() if own == (2,))
    assert paid(MASKED, arm, costs={"base": 1.0, "variables": {"a0": 2.0, owner: 4.0, "a5": 8.0}}) == 7.0


def test_discrete_and_contextual_actions_cost_what_they_set():
    arms = make_task(gym.make(ARMS), 0).arms
    arm = next(index for index, values in enumerate(arms) if values)
    ((name, value),) = arms[arm].items()
    costs = {"base": 1.0, "variables": {name: 2.0}, "per_unit": {name: 3.0}, "reference": {name: 0.5}}
    assert paid(ARMS, arm, costs=costs) == 1.0 + 2.0 + 3.0 * abs(value - 0.5)
    task = make_task(gym.make(CONTEXTUAL), 0)
    prices = {name: 2.0**index for index, name in enumerate(task.manipulable)}
    for index, scope in enumerate(task.scopes):
        action = {"scope": index, "values": np.full(len(prices), 0.5)}
        assert paid(CONTEXTUAL, action, costs=prices) == sum(prices[name] for name, _ in scope)


def test_only_the_agents_own_part_is_paid_for():
    assert paid("CBO/Dropwave-Penny-v0", [1.0, 2 / 3], costs={"x0": 1.0, "x1": 4.0}) == 5.0
    env = reset(gym.make("CBO/DCBOStat-v0", costs={"X": 1.0, "Z": 4.0}, trials=2))
    actions = [{"target": target, "values": [0.5, 0.1]} for target in (0, 2, 0, 1)]
    assert [env.step(action)[4]["cost"] for action in actions] == [0.0, 4.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("env_id", "costs"),
    [
        (TOY, PAPER),
        (COMPLETE, {"base": 1, "variables": {"B": 1.0, "D": 2.0}, "sets": {"B, E": 7, "D,E": 3}}),
        (ALPINE2, {"base": 1, "per_unit": {"X0": 1.0, "a3": 2.0}}),
        (CELLS, {"base": 1, "per_unit": {"X0": 1.0, "a3": 2.0}}),
        (MASKED, {"base": 1, "variables": {"a0": 2.0}, "sets": {"a0, a1": 5.0}}),
        (ARMS, {"base": 1}),
        (CONTEXTUAL, {"base": 1, "observed": {"Y": 1.0}}),
    ],
)
def test_many_rounds_at_once_cost_what_single_ones_do(env_id, costs):
    count = 8
    one = gym.make(env_id, costs=costs)
    many = gym.make_vec(env_id, num_envs=count, vectorization_mode="vector_entry_point", costs=costs)
    one.reset(seed=0)
    assert "cost" not in many.reset(seed=0)[1]
    one.action_space.seed(1)
    actions = [one.action_space.sample() for _ in range(count)]
    info = many.step(concatenate(one.action_space, actions, create_empty_array(one.action_space, count)))[4]
    assert info["_cost"].tolist() == [True] * count
    singles = [one.step(action)[4]["cost"] for action in actions]
    assert info["cost"].tolist() == singles
    assert one.unwrapped.counterfactual(actions[0])[4]["cost"] == singles[0]


def test_where_nothing_is_paid_nothing_is_said():
    env = reset(gym.make(TOY))
    assert "cost" not in env.step(setting(1))[4]
    assert make_task(env, 0).costs is None
    assert make_task(gym.make("CBO/ToyGraph-Costs-v0", costs=None), 0).costs is None
    assert "cost" not in evaluate("Random", TOY, 0, horizon=2).table.columns


@pytest.mark.parametrize(
    ("env_id", "costs", "said"),
    [
        (TOY, {"X0": -1, "X1": 1}, "price of 'X0' in variables must be a finite number above 0; given -1"),
        (TOY, {"base": -1.0}, "base must be a finite number of at least 0; given -1.0"),
        (TOY, {"base": 1, "per_unit": {"X1": float("inf")}}, "price of 'X1' in per_unit must be"),
        (TOY, {"base": 1, "per_unit": {"X1": 1}, "reference": {"X1": "far"}}, "reference of 'X1' must be a finite"),
        (TOY, {"X0": 1, "X2": 1}, r"\['X2'\] cannot be priced; choose from \['X0', 'X1'\]"),
        (TOY, {"base": 1, "sets": {"": 1}}, "a set must have a member"),
        (TOY, {"base": 1, "X0": 2}, r"take only \['base', 'variables', .*given also \['X0'\]"),
        (TOY, {"X0": 1}, r"leave an intervention on \['X1'\] without a fixed price"),
        (TOY, {"base": 1, "reference": {"X1": 1.0}}, r"no price per_unit of \['X1'\]"),
        (TOY, 3, "costs map names to prices"),
        (TOY, {}, "must have at least one price; give None"),
        (ALPINE2, {"base": 1, "per_unit": {"a0": 1}, "reference": {"a0": 1}}, "counted from the null action"),
        (ALPINE2, {"base": 1, "variables": {"a0": 1, "X0": 1}}, "price 'a0' twice"),
        (MASKED, {"base": 1, "per_unit": {"a0": 1}}, "cannot have per_unit"),
    ],
)
def test_wrong_costs_are_refused_when_the_environment_is_made(env_id, costs, said):
    with pytest.raises(ArgumentError, match=said):
        gym.make(env_id, costs=costs)


def test_costs_are_those_of_visible_variables_of_a_label_and_of_a_problem():
    costs = {"base": 1, "observed": {"C": 2.0, "A": 4.0}}
    partly = make_task(gym.make(COMPLETE, graph="wrong", graph_omitted=["A"], costs=costs), 0)
    assert "A" not in partly.nodes
    assert partly.costs.observed == {"C": 2.0}
    label = 'CBO/ToyGraph-v0(costs={"X0": 1.0, "X1": 4.0})'
    env = make_env(Spec.parse(label))
    assert make_task(env, 0).costs == Costs(variables={"X0": 1.0, "X1": 4.0})
    assert oracle_of(env).optimum.value == find_entry(TOY).optimum.value
    assert str(Spec.parse(str(Spec.parse(label)))) == str(Spec.parse(label))
    problem = build_problem("cbo_gym.problems.systems.hard_graphs:toy_graph")
    priced = replace(problem, outcomes=replace(problem.outcomes, costs=Costs(base=2.0)))
    assert paid("CBO/Custom-Hard-v0", setting(1), problem=priced) == 2.0


# Evaluation -----------------------------------------------------------------------------------------------------


def test_a_run_keeps_the_cost_of_each_round(tmp_path):
    run = evaluate("Random", "CBO/ToyGraph-Costs-v0", 0, horizon=6)
    by_hand = []
    for chosen, (x0, x1) in zip(run.table["choice"], run.table["action"], strict=True):
        by_hand.append([0.0, 1.0 + abs(10.0 * x0 - 5.0), 10.0 + abs(25.0 * x1 - 5.0)][chosen])
    assert run.table["cost"].to_list() == pytest.approx(by_hand)
    save_run(tmp_path / "run.parquet", run)
    assert load_run(tmp_path / "run.parquet").table["cost"].to_list() == run.table["cost"].to_list()
    unpriced = evaluate("Random", TOY, 0, horizon=6)
    assert run.table.drop("cost", "act_seconds", "update_seconds", "recommend_seconds").equals(
        unpriced.table.drop("act_seconds", "update_seconds", "recommend_seconds")
    )
    board = leaderboard([run, unpriced])
    totals = dict(board.per_env.select("env", "total_cost").iter_rows())
    assert totals["CBO/ToyGraph-Costs-v0, T=6"] == pytest.approx(sum(by_hand))
    assert totals["CBO/ToyGraph-v0, T=6"] is None
    assert env_table(board, "CBO/ToyGraph-Costs-v0, T=6").header[-1] == "total cost"
    assert "total cost" not in env_table(board, "CBO/ToyGraph-v0, T=6").header


def with_costs(run, costs):
    return replace(run, table=run.table.with_columns(pl.Series("cost", costs, dtype=pl.Float64)))


def test_curves_against_cost_are_steps_on_a_common_axis():
    first = with_costs(made_up_run("A", 0, [0.1, 0.2, 0.3]), [1.0, 1.0, 2.0])  # has paid 1, 2, 4
    second = with_costs(made_up_run("A", 1, [0.5, 0.6, 0.7]), [0.0, 3.0, 5.0])  # 0, 3, 8
    dear = with_costs(made_up_run("B", 0, [0.0, 0.0, 0.0]), [4.0, 4.0, 4.0])
    axis = CostPaid([first, second, dear])
    values = axis.values([first, second], np.array([[0.1, 0.2, 0.3], [0.5, 0.6, 0.7]]))
    at = {round(float(cost), 9): column.tolist() for cost, column in zip(axis.x, values.T, strict=True)}
    assert axis.x[0] == 0.0
    assert axis.x[-1] == 12.0
    assert np.isnan(at[0.0][0])
    assert at[0.0][1] == 0.5  # a round that cost nothing
    assert at[1.0] == [0.1, 0.5]
    assert at[2.96] == [0.2, 0.5]
    assert at[4.0] == [0.3, 0.6]
    assert at[8.0] == [0.3, 0.7]  # the first has ended
    assert np.isnan(at[12.0]).all()  # and so have all of the agent's
    missing = axis.values([first], np.array([[0.1, np.nan, np.nan]]))
    assert missing[0][axis.x == 4.0].tolist() == [0.1]  # recommendations that were not asked for


def test_figures_show_every_curve_against_cost_too():
    runs = [with_costs(choosing_run("A", seed, [0, 1, 1]), [1.0, 2.0, 2.0 + seed]) for seed in range(2)]
    figure = plots.regret_curves(runs, against=CostPaid)
    assert {axis.get_xlabel() for axis in figure.axes} == {"Cost paid"}
    assert figure.axes[0].lines[0].get_xdata()[[0, -1]].tolist() == [1.0, 6.0]
    captions = {figure.file: figure.caption for figure in report_of(leaderboard(runs)).figures}
    for name in ("regret-cost-CBO-CoCaFig1-v0-T3", "choices-cost-CBO-CoCaFig1-v0-T3"):
        assert "Against the cost paid" in captions[name]
    with pytest.raises(ArgumentError, match="environments whose actions have costs"):
        plots.regret_curves([made_up_run("A", 0, [0.5])], against=CostPaid)


# Agents ---------------------------------------------------------------------------------------------------------


def played(agent, costs=None):
    return evaluate(agent, TOY if costs is None else f"{TOY}(costs={costs!r})", 1, horizon=2, recommend="end").table


def test_cbo_goes_by_the_tasks_costs_where_it_has_none_of_its_own():
    dear = {"X0": 1.0, "X1": 1e9}
    unpriced, priced = played("CBO"), played("CBO", dear)
    assert set(unpriced["choice"]) - {0} == {2}
    assert 2 not in set(priced["choice"])
    own = played("CBO(costs={'X0': 1.0, 'X1': 1.0})", dear)
    assert own["reward"].to_list() == unpriced["reward"].to_list()
    assert played("CBO", {"X0": 1.0, "X1": 1.0})["reward"].to_list() == unpriced["reward"].to_list()


# CEO's common GP takes the cheap values, amid the observations, for all but known: no price makes them tell anything
@pytest.mark.parametrize("agent", ["CBO", "CEO(in_common=False)"])
def test_values_that_cost_more_are_played_less(agent):
    graph = {"graph": "partial", "graph_candidates": 2} if agent.startswith("CEO") else {}
    fixed = {"base": 100.0, "variables": {"X0": 1e6}}  # so that X1 is set
    distances = []
    for units in ({}, {"per_unit": {"X1": 100.0}, "reference": {"X1": 2.0}}):
        table = evaluate(agent, TOY, 1, horizon=3, recommend="end", costs=fixed | units, **graph).table
        assert set(table["choice"]) == {2}
        distances.append(sum(abs(25.0 * x1 - 5.0 - 2.0) for _, x1 in table["action"]))
    assert distances[1] < 0.8 * distances[0]
