# requires: torch
# task: a hand-written policy gradient on 256 environments at once
import gymnasium as gym
import torch

import cbo_gym
from cbo_gym.envs import oracle_of

envs = gym.make_vec("CBO/Rosenbrock-v0", num_envs=256, vectorization_mode="vector_entry_point")
mean = torch.full(envs.single_action_space.shape, 0.5, requires_grad=True)
optimiser = torch.optim.Adam([mean], lr=0.02)
envs.reset(seed=0)
for _ in range(90):
    law = torch.distributions.Normal(mean, 0.05)
    actions = law.sample((256,)).clamp(0.0, 1.0)
    _, rewards, *_ = envs.step(actions.double().numpy())
    advantage = torch.tensor((rewards - rewards.mean()) / (rewards.std() + 1e-9))
    loss = -(law.log_prob(actions).sum(-1) * advantage).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
oracle = oracle_of(gym.make("CBO/Rosenbrock-v0"))
found = oracle.expected_rewards([mean.detach().clamp(0.0, 1.0).double().numpy()]).value[0]
assert found > oracle.optimum.random_value
assert cbo_gym.__version__
