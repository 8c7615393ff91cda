# requires: gymnasium
# task: statistics, normalisation, flattening, recording
import gymnasium as gym
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FlattenObservation, NormalizeObservation, NormalizeReward, RecordEpisodeStatistics

import cbo_gym
from cbo_gym.envs.wrappers import FlattenAction

env = FlattenAction(gym.make("CBO/ToyGraph-v0", max_episode_steps=5))
env = NormalizeReward(NormalizeObservation(FlattenObservation(RecordEpisodeStatistics(env))))
env.reset(seed=0)
env.action_space.seed(0)
for _ in range(5):
    *_, truncated, info = env.step(env.action_space.sample())
assert truncated
assert info["episode"]["l"] == 5
check_env(gym.make("CBO/ToyGraph-v0").unwrapped, skip_render_check=True)
assert cbo_gym.__version__
