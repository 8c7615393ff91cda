"""What agents know of the graph: all of it, names, something wrong, or candidates."""

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import UnsupportedModeError, evaluate, make_task
from cbo_gym.envs import oracle_of
from cbo_gym.envs.registry import find_entry
from cbo_gym.errors import ArgumentError, HiddenGraphError
from cbo_gym.evaluation.play.sweep import plan, run_job
from cbo_gym.scm import CausalDiagram
from cbo_gym.scm.equivalence import markov_equivalents
from cbo_gym.scm.scopes import minimal_intervention_sets
from cbo_gym.task import Mode, SoftTask
from tests.support.agents import Centre, Recorder
from tests.support.leaks import FORBIDDEN, reachable

TOY, PSA, COMPLETE, ALPINE2 = "CBO/ToyGraph-v0", "CBO/PSAGraph-v0", "CBO/CompleteGraph-v0", "CBO/Alpine2-Noisy-v0"
ONE_A_MODE = (PSA, ALPINE2, "CBO/Alpine2-Aggregated-v0", "CBO/CoCaFig1-v0", "CBO/SSEMPeriodic-v1")


def task_with(env_id, **graph):
    return make_task(gym.make(env_id, **graph), 0)


@pytest.mark.parametrize("env_id", ONE_A_MODE)
def test_hidden_graphs_are_in_nothing_that_an_agent_receives(env_id):
    recorder = Recorder()
    evaluate(recorder, f"{env_id}(graph='hidden')", seed=0, horizon=2)
    assert not [item for item in reachable(recorder.received) if isinstance(item, (*FORBIDDEN, CausalDiagram))]
    task = recorder.received[0]
    known = task_with(env_id)
    assert [item for item in reachable(known) if isinstance(item, CausalDiagram)]
    assert set(task.nodes) == set(known.nodes)
    with pytest.raises(HiddenGraphError, match="only the names of the variables of"):
        task.diagram  # noqa: B018
    if task.mode is Mode.SOFT:
        assert list(task.action_nodes) == [name for name in task.nodes if name in task.action_nodes]
    assert list(task.noise or {}) == [name for name in task.nodes if name in (task.noise or {})]


@pytest.mark.parametrize(
    "graph", [{"graph": "wrong", "graph_reversed": 2}, {"graph": "partial", "graph_candidates": 3}]
)
def test_the_true_graph_is_not_in_the_knowledge_that_replaces_it(graph):
    recorder = Recorder()
    evaluate(recorder, ALPINE2, seed=0, horizon=2, **graph)
    diagrams = {item for item in reachable(recorder.received) if isinstance(item, CausalDiagram)}
    truth = task_with(ALPINE2).diagram
    assert (truth in diagrams) == (graph["graph"] == "partial")
    assert not [item for item in reachable(recorder.received) if isinstance(item, FORBIDDEN)]


def test_observations_follow_the_order_of_the_known_nodes():
    plain, sorted_ = gym.make(PSA), gym.make(PSA, graph="hidden")
    names = sorted_.unwrapped.dynamics.nodes
    assert names == ("Age", "Aspirin", "BMI", "Cancer", "Statin", "Y")
    indices = [plain.unwrapped.scm.nodes.index(name) for name in names]
    vector = gym.make_vec(PSA, 2, vectorization_mode="vector_entry_point", graph="hidden")
    action = {"target": np.int64(0), "values": np.full(2, 0.5)}
    both = {"target": np.zeros(2, dtype=np.int64), "values": np.full((2, 2), 0.5)}
    for env in (plain, sorted_, vector):
        env.reset(seed=3)
    seen = plain.step(action)[0]["nodes"]
    np.testing.assert_array_equal(sorted_.step(action)[0]["nodes"], seen[indices])
    np.testing.assert_allclose(vector.step(both)[0]["nodes"][0], seen[indices])
    first, other = task_with(COMPLETE), task_with(COMPLETE, graph="partial")
    assert first.nodes != other.nodes
    indices = [first.nodes.index(name) for name in other.nodes]
    for one, same in zip(first.initial_data, other.initial_data, strict=True):
        np.testing.assert_array_equal(same.observation["nodes"], one.observation["nodes"][indices])


def test_an_omitted_variable_is_neither_known_nor_observed():
    task = task_with(PSA, graph="wrong", graph_omitted=["Age"])
    assert "Age" not in task.nodes
    assert set(task.noise) == set(task.nodes)
    assert (
        task.observation_space["nodes"].shape == (len(task.nodes),) == task.initial_data[0].observation["nodes"].shape
    )
    assert task.diagram == task_with(PSA).diagram.subgraph(set(task.nodes))


@pytest.mark.parametrize(
    ("changes", "missing", "added"),
    [({}, 1, 0), ({"graph_missing": 3}, 3, 0), ({"graph_added": 2}, 0, 2), ({"graph_reversed": 2}, 2, 2)],
)
def test_wrong_graphs_have_the_changes_asked_for(changes, missing, added):
    truth = task_with(COMPLETE).diagram
    drawn = set()
    for seed in range(4):
        task = task_with(COMPLETE, graph="wrong", graph_seed=seed, **changes)
        wrong = task.diagram
        assert len(truth.directed - wrong.directed) == missing
        assert len(wrong.directed - truth.directed) == added
        assert wrong.bidirected == truth.bidirected
        assert wrong.is_acyclic
        assert task.nodes == wrong.nodes
        assert all(task.nodes.index(cause) < task.nodes.index(effect) for cause, effect in wrong.directed)
        assert not wrong.children("Y")
        minimal = minimal_intervention_sets(wrong, "Y", task.manipulable)
        assert set(task.targets) == {target for target in minimal if len(target) <= 2}
        assert len(task.targets) > 1
        drawn.add(wrong)
    assert len(drawn) > 1
    assert wrong == task_with(COMPLETE, graph="wrong", graph_seed=3, **changes).diagram


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"graph": ["hidden"]}, "graph must be one of .*; given"),
        ({"graph": "partial", "graph_candidates": 65}, "graph_candidates must be .* from 1 to 64; given 65"),
        ({"graph": "hiden"}, "graph must be one of .*; did you mean 'hidden'"),
        ({"graph_missing": 1}, r"graph='known' takes the keywords \[\]; given also \['graph_missing'\]"),
        ({"graph": "wrong", "graph_missing": 3}, "graph_missing must be at most 2, the number of edges; given 3"),
        ({"graph": "wrong", "graph_missing": 0}, "a wrong graph needs a change"),
        ({"graph": "wrong", "graph_missing": 2}, "nothing that can be acted on affects the reward in it"),
        ({"graph": "wrong", "graph_added": [("Y", "X0")]}, "graph_added names .*choose from the pairs to join"),
        ({"graph": "wrong", "graph_reversed": [("X1", "Y")]}, "graph_reversed names .*do not lead into the reward"),
        ({"graph": "wrong", "graph_omitted": 1}, "graph_omitted must be at most 0"),
        ({"graph": "wrong", "graph_seed": -1}, "graph_seed must be at least 0"),
        (
            {"graph": "partial", "graph_candidates": 50},
            "ToyGraph has .* graphs with one edge changed; given 50 candidates",
        ),
        ({"graph": "partial", "graph_candidates": [[("X0", "X1"), ("X1", "X0")]]}, "it has a cycle"),
        ({"graph": "partial", "graph_candidates": [7]}, r"a list of edges \(cause, effect\); given 7"),
        (
            {"graph": "partial", "graph_candidates": "X"},
            "a number from 1 to 64 or a list of 1 to 64 diagrams; given 'X'",
        ),
    ],
)
def test_bad_tellings_are_errors(keywords, message):
    with pytest.raises(ArgumentError, match=message):
        gym.make(TOY, **keywords)


def test_a_cycle_that_is_asked_for_is_an_error():
    cycle = {"graph": "wrong", "graph_reversed": [("A", "E")], "graph_added": [("E", "F")]}
    assert task_with(COMPLETE, **cycle).diagram.is_acyclic
    with pytest.raises(ArgumentError, match="it has a cycle"):
        gym.make(COMPLETE, graph="wrong", graph_added=[("E", "F")])


def test_candidates_are_the_equivalence_class_a_number_or_a_list():
    chain = task_with(TOY, graph="partial").graph.candidates
    assert [sorted(diagram.directed) for diagram in chain] == [
        [("X0", "X1"), ("X1", "Y")],
        [("X1", "X0"), ("X1", "Y")],
    ]
    some = task_with(COMPLETE, graph="partial", graph_candidates=5, graph_seed=2)
    assert len(set(some.graph.candidates)) == 5
    assert task_with(COMPLETE).diagram in some.graph.candidates
    assert {diagram.nodes for diagram in some.graph.candidates} == {some.nodes}
    sets = [minimal_intervention_sets(diagram, "Y", some.manipulable) for diagram in some.graph.candidates]
    assert set(some.targets) == set().union(*sets)
    with pytest.warns(UserWarning, match="the true graph of ToyGraph is not among the candidates"):
        without = task_with(TOY, graph="partial", graph_candidates=[[("X0", "Y")], [("X1", "Y")]])
    assert set(without.targets) == {frozenset(), frozenset({"X0"}), frozenset({"X1"})}
    with pytest.raises(HiddenGraphError, match="only 2 candidate diagrams of"):
        without.diagram  # noqa: B018


def test_equivalence_classes_by_brute_force():
    """All orientations of the skeleton with the same colliders and Y a sink."""
    truth = CausalDiagram("ABCDY", [("A", "B"), ("B", "C"), ("A", "C"), ("C", "D"), ("D", "Y"), ("B", "Y")])

    def colliders(diagram):
        joined = {frozenset(edge) for edge in diagram.directed}
        pairs = {(a, b, c) for a, c in diagram.directed for b, other in diagram.directed if other == c and a < b}
        return {(a, b, c) for a, b, c in pairs if frozenset((a, b)) not in joined}

    edges = sorted(truth.directed)
    turned = [
        [edge[::-1] if bits >> i & 1 else edge for i, edge in enumerate(edges)] for bits in range(2 ** len(edges))
    ]
    every = [CausalDiagram("ABCDY", way, allow_cycles=True) for way in turned]
    same = [d for d in every if d.is_acyclic and not d.children("Y") and colliders(d) == colliders(truth)]
    assert set(markov_equivalents(truth, ["Y"], 100)) == set(same)
    assert len(same) > 4
    assert len(markov_equivalents(truth, ["Y"], 3)) == 3


@pytest.mark.parametrize(
    "graph", [{"graph": "hidden"}, {"graph": "wrong", "graph_missing": [("X0", "X1")]}, {"graph": "partial"}]
)
def test_rewards_and_optimum_are_those_of_the_true_problem(graph):
    known, other = oracle_of(gym.make(TOY)), oracle_of(gym.make(TOY, **graph))
    assert other.optimum.value == known.optimum.value == find_entry(TOY).optimum.value
    assert other.optimum.random_value == known.optimum.random_value
    assert other.dynamics.truth.knowledge.diagram == known.dynamics.knowledge.diagram
    setting = {"target": np.int64(1), "values": np.array([0.3, 0.6])}
    name = "X0" if len(other.dynamics.problem.targets) == 3 else "X1"
    same = known.dynamics.codec.from_record({name: other.dynamics.codec.to_record(setting)[name]})
    np.testing.assert_allclose(other.expected_rewards([setting])[0], known.expected_rewards([same])[0], rtol=1e-6)


def test_a_known_composition_goes_with_a_diagram():
    ackley = "CBO/Ackley-v0"
    compositions = []
    for graph in ("known", "wrong", "hidden", "partial"):
        task = task_with(ackley, known_composition=True, graph=graph, **{"graph_added": 1} if graph == "wrong" else {})
        assert isinstance(task, SoftTask)
        compositions.append(task.composition is not None)
    assert compositions == [True, True, False, False]


def test_agents_that_need_a_graph_are_skipped_with_the_reason(tmp_path):
    class Curious(Centre):
        def setup(self, seed):
            self.parents = self.task.diagram.parents("Y")

    with pytest.raises(UnsupportedModeError, match="needs a causal diagram"):
        evaluate(Curious(), TOY, 0, horizon=2, graph="hidden")
    skipped, played = map(run_job, plan(["CBO", "Random"], [f"{TOY}(graph='hidden')"], [0], tmp_path, horizon=2))
    assert (skipped.status, played.status) == ("skipped", "finished")
    assert "only the names of the variables of" in skipped.error
