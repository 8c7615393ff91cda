# requires: tianshou
# task: DQN learns which of 16 actions is best
import gymnasium as gym
from gymnasium.wrappers import FlattenObservation
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

import cbo_gym
from cbo_gym.envs.wrappers import DiscreteAction


def make():
    return FlattenObservation(DiscreteAction(gym.make("CBO/Dropwave-v0", max_episode_steps=10), count=16))


env = make()
net = Net(state_shape=env.observation_space.shape, action_shape=env.action_space.n, hidden_sizes=[32])
policy = DiscreteQLearningPolicy(model=net, action_space=env.action_space, eps_training=0.3)
algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-2), gamma=0.0)
train, test = DummyVectorEnv([make] * 4), DummyVectorEnv([make] * 2)
collector = Collector[CollectStats](algorithm, train, VectorReplayBuffer(2_000, 4), exploration_noise=True)
result = algorithm.run_training(
    OffPolicyTrainerParams(
        training_collector=collector,
        test_collector=Collector[CollectStats](algorithm, test),
        max_epochs=2,
        epoch_num_steps=800,
        collection_step_num_env_steps=40,
        test_step_num_episodes=2,
        batch_size=64,
        update_step_num_gradient_steps_per_sample=0.5,
    )
)
at_random = cbo_gym.evaluate("Random", "CBO/Dropwave-v0", 0, horizon=1).random_value
assert result.best_reward / 10 > at_random + 0.1
