from dataclasses import replace

import numpy as np
import pytest
import torch

from cbo_gym import Task, make_task
from cbo_gym.actions import ChoiceCodec
from cbo_gym.agents.gp.model import SurrogateError
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.agents.networks.kernels import additive_kernel, mechanism_kernel, two_part_kernel
from cbo_gym.envs import CausalBanditEnv
from cbo_gym.problems import Problem
from cbo_gym.scm import Normal, StructuralCausalModel, Variable
from tests.support.loop import make


def trained(task: Task) -> GPNetwork:
    network = GPNetwork(task)
    for past in task.initial_data:
        network.add(past.action, past.observation)
    return network


def posterior_mean(node, points, mean, std):
    return mean


def own(value):
    return value


def test_only_minimal_target_sets_are_drawn_and_any_may_have_been_played() -> None:
    task = make("CBO/CompleteGraph-v0", 0, 1)[1]
    all_three = frozenset("BDE")  # D and E cut off B
    targets, old = (*task.targets, all_three), task.codec
    codec = ChoiceCodec(old.space, old.domains, old.key, targets, (*old.choices, "{B, D, E}"))
    features = GPNetwork(replace(task, targets=targets, codec=codec)).features
    members = features.membership(features.draw(100, torch.Generator().manual_seed(0)))
    drawn = {frozenset(name for name, chosen in zip("BDE", row, strict=True) if chosen) for row in members.tolist()}
    assert drawn == set(task.targets)
    played = {"target": np.int64(len(task.targets)), "values": np.array([0.1, 0.2, 0.3])}
    assert features.decode(features.encode(played))["target"] == played["target"]


def test_a_pass_composes_the_nodes_posteriors() -> None:
    network = trained(make("CBO/Alpine2-v0", 0, 1)[1])
    actions = torch.rand(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    passed = network.rollout(actions, posterior_mean, {})
    value = network.surrogates["X0"].posterior(actions[:, :1])[0]
    for index, node in enumerate(["X1", "X2", "X3", "X4", "Y"], start=1):
        value = network.surrogates[node].posterior(torch.stack([value, actions[:, index]], -1))[0]
        torch.testing.assert_close(passed[node], value[:, None])


def test_nodes_that_predict_at_once_predict_as_each_alone() -> None:
    network = trained(make("CBO/BinaryTree-v0", 0, 1, depth=3)[1])
    seen = {}

    def bound(node, points, mean, std):
        seen[node] = points, mean, std
        return mean + 0.3 * std

    for count in (5, 5000):  # few enough to be stacked, and too many
        actions = torch.rand(count, 14, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        reward = network.rollout(actions.requires_grad_(True), bound, {})["Y"]
        for node, (points, mean, std) in seen.items():
            alone = network.surrogates[node].posterior(points)
            torch.testing.assert_close((mean, std), alone, rtol=1e-9, atol=1e-9)
        slope = torch.autograd.grad(reward[:5].sum(), actions)[0][:5]
        if count == 5:
            stacked = slope
    torch.testing.assert_close(stacked, slope, rtol=1e-7, atol=1e-9)
    eta = {node: 2.0 * actions[:5, [index]] - 1.0 for index, node in enumerate(network.nodes[:-2])}
    within = network.rollout(actions[:5], lambda node, _, mean, std: mean + 0.3 * std * eta.get(node, 1.0), {})["Y"]
    torch.testing.assert_close(network.rewards_within(actions[:5], 0.3, eta, {}), within[:, 0])


def test_noise_enters_every_node_and_its_descendants() -> None:
    task = make("CBO/Alpine2-Noisy-v0", 0, 1)[1]
    network = trained(task)
    noise = network.draw_noise(512, seed=1)
    assert set(noise) == set(task.nodes)
    assert all(abs(float(draws.std()) - 1.0) < 0.02 and abs(float(draws.mean())) < 0.01 for draws in noise.values())
    action = torch.full((1, 6), 0.3, dtype=torch.float64)
    passed = network.rollout(action, posterior_mean, noise)
    clean = network.rollout(action, posterior_mean, {})
    torch.testing.assert_close(passed["X0"], clean["X0"] + noise["X0"])
    inputs = torch.stack([passed["X0"], torch.full_like(passed["X0"], 0.3)], -1)
    torch.testing.assert_close(passed["X1"], network.surrogates["X1"].posterior(inputs)[0] + noise["X1"])


def test_a_mean_of_the_noise_belongs_to_the_function() -> None:
    """Age ~ U(55, 75): the network's root is about 65, and its noise is centred."""
    network = trained(make("CBO/PSAGraph-v0", 0, 1)[1])
    draws = network.draw_noise(1024, seed=0)["Age"]
    assert abs(float(draws.mean())) < 0.05
    assert float(draws.max() - draws.min()) == pytest.approx(20.0, abs=0.1)
    observe = torch.zeros(1, 4, dtype=torch.float64)
    assert float(network.rollout(observe, posterior_mean, {})["Age"]) == pytest.approx(65.0, abs=4.0)


def test_a_node_that_was_always_set_has_its_prior() -> None:
    task = make("CBO/ToyGraph-v0", 0, 1)[1]
    network = GPNetwork(task)
    network.add({"target": 2, "values": np.array([0.5, 0.5])}, {"nodes": np.array([0.1, 7.5, -0.3])})  # do(X1)
    bounds = [network.rollout(torch.zeros(1, 4).double(), lambda _, x, m, s, k=k: m + k * s, {})["X1"] for k in (0, 1)]
    low, high = task.manipulable["X1"]
    middle, quarter = (low + high) / 2, (high - low) / 4
    assert [float(bound) for bound in bounds] == pytest.approx([middle, middle + quarter])


def test_set_nodes_take_their_values_do_not_train_their_gp_and_the_rest_goes_on() -> None:
    """do(X0 = -5) gives X1 = 148, far from its domain [-5, 20], where the reward's waves are to be resolved."""
    task = make("CBO/ToyGraph-v0", 0, 1)[1]
    network = trained(task)  # 10 observations, 2 rounds of do(X0), 2 of do(X1)
    assert {node: len(gp) for node, gp in network.surrogates.items()} == {"X0": 12, "X1": 12, "Y": 14}
    # values of X0 and X1 in [0, 1], then the membership: do(X1 = 0), do(X0 = -5), observe
    inputs = torch.tensor([[0.5, 0.2, 0, 1], [0.0, 0.5, 1, 0], [0.5, 0.5, 0, 0]], dtype=torch.float64)
    values = network.rollout(inputs, posterior_mean, {})
    assert float(values["X1"][0]) == pytest.approx(0.0)
    assert float(values["X0"][1]) == -5.0
    expected = network.surrogates["Y"].posterior(torch.full((1, 1), 0.2, dtype=torch.float64))[0]
    torch.testing.assert_close(values["Y"][0], expected)
    natural = network.surrogates["X1"].posterior((values["X0"][2][:, None] + 5.0) / 10.0)[0]
    torch.testing.assert_close(values["X1"][2], natural)
    network.add({"target": 1, "values": np.array([0.0, 0.5])}, {"nodes": np.array([-5.0, 148.0, 0.3])})
    gp = network.surrogates["Y"]
    assert float(gp.inputs[-1, 0]) == pytest.approx((148.0 + 5.0) / 25.0)
    torch.testing.assert_close(gp.normalise(gp.inputs), gp.inputs)


def test_only_the_rewards_ancestors_are_modelled() -> None:
    task = make("CBO/CompleteGraph-v0", 0, 1)[1]
    assert GPNetwork(task).nodes == task.nodes
    variables = [Variable("X", own, (), (0,)), Variable("Side", own, (), (1,)), Variable("Y", own, ("X",))]
    assert GPNetwork(custom_task(variables, 2)).nodes == ("X", "Y")


def test_the_kernel_of_a_node_is_by_its_parents_and_actions() -> None:
    for env_id, node, kernel in [
        ("CBO/CompleteGraph-v0", "Y", additive_kernel(2)),
        ("CBO/Alpine2-v0", "X1", mechanism_kernel(2, parents=1)),
    ]:
        surrogate = GPNetwork(make(env_id, 0, 1)[1]).surrogates[node]
        assert surrogate.kernel.structure == kernel.structure


def test_noise_with_a_latent_part_is_not_taken_for_signal() -> None:
    """CompleteGraph's rewards vary by 2.6 about their mean; with BoTorch's prior a fifth would be left as noise."""
    task = make("CBO/CompleteGraph-v0", 0, 1)[1]
    left, believed = [], []
    for seed in range(2):
        gp, rng = GPNetwork(task).surrogates["Y"], np.random.default_rng(seed)
        gp.add(rng.random((40, 2)), rng.normal(0.0, 2.6, 40))
        left.append(float(gp.noise_scale))
        believed.append(float(gp.mean(gp.inputs).std()))
    assert np.mean(left) > 1.4
    assert np.mean(believed) < 0.65 * 2.6


def custom_task(variables: list[Variable], dims: int) -> Task:
    problem = Problem(
        "Custom", StructuralCausalModel(variables, reward="Y"), "test", "none", action_domains=[(0.0, 1.0)] * dims
    )
    return make_task(CausalBanditEnv(problem), seed=0, horizon=5)


def test_a_failed_factorisation_names_the_node() -> None:
    task = make("CBO/Alpine2-v0", 0, 1)[1]
    network = trained(task)
    network.rollout(torch.rand(1, 6, dtype=torch.float64), posterior_mean, {})
    gp = network.surrogates["X3"]
    network.add(task.action_space.sample(), {"nodes": np.full(len(task.nodes), 0.3)})
    gp.schedule.early_fits, gp.schedule.growth = 0, 100.0
    gp.theta = torch.full_like(gp.theta, torch.nan)
    with pytest.raises(SurrogateError, match="node X3"):
        network.rollout(torch.rand(1, 6, dtype=torch.float64), posterior_mean, {})


def confounded_chain() -> Problem:
    """a0 -> P -> Q -> Y and a1 -> Q, a latent cause of P and Q and one of Q and Y."""
    variables = [
        Variable("U", noise_itself, noise=Normal(0.0, 0.3), observed=False),
        Variable("V", noise_itself, noise=Normal(0.0, 0.3), observed=False),
        Variable("P", lambda u, a, noise: np.sin(3.0 * a) + u, ("U",), (0,)),
        Variable("Q", lambda p, u, v, a, noise: p - u + a + v, ("P", "U", "V"), (1,)),
        Variable("Y", lambda q, v, noise: np.cos(4.0 * (q - v)) + noise, ("Q", "V"), noise=Normal(0.0, 0.1)),
    ]
    scm = StructuralCausalModel(variables, reward="Y")
    return Problem(name="Chain", scm=scm, description="Latent.", citation="None.", action_domains=[(0.0, 1.0)] * 2)


def noise_itself(noise):
    return noise


@pytest.mark.parametrize("beside", [True, False])
def test_children_are_given_the_present_estimates_of_signals(beside) -> None:
    env = CausalBanditEnv(confounded_chain())
    network = GPNetwork(make_task(env, seed=0, horizon=12), signals=True, signal_inputs=beside)
    env.reset(seed=1)
    assert network.signals == ("P", "Q")
    assert network.noisy == ("Y",)  # the others' noise enters no other node
    env.action_space.seed(2)
    for _ in range(6):
        action = env.action_space.sample()
        network.add(action, env.step(action)[0])
    p, q, y = (network.surrogates[node] for node in ("P", "Q", "Y"))
    torch.testing.assert_close(q.inputs[:, 0], p.mean(p.inputs))
    torch.testing.assert_close(y.inputs[:, 0], q.mean(q.inputs))
    torch.testing.assert_close(q.inputs[:, 1], network.inputs[:, 1])  # its own action, then P's
    assert q.inputs.shape[1] == (3 if beside else 2)
    assert y.inputs.shape[1] == (3 if beside else 1)  # Q, and what Q is given: P's signal, the action
    assert (q.kernel.structure == two_part_kernel(3, 2).structure) == beside
    means = network.expected_rewards(network.inputs, {})
    torch.testing.assert_close(means, y.mean(y.inputs))


def test_there_are_signals_in_soft_mode_alone_where_all_children_share_the_noise() -> None:
    for env_id in ("CBO/CompleteGraph-v0", "CBO/Dropwave-Noisy-v0"):
        assert GPNetwork(make(env_id, 0, 1)[1], signals=True).signals == ()
    task = make("CBO/Dropwave-NoisyPublished-v0", 0, 1)[1]
    assert GPNetwork(task).signals == ()
    assert GPNetwork(task, signals=True).signals == ("X0",)
