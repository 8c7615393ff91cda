# requires: stable-baselines3
# task: PPO learns the dose for each patient
from stable_baselines3 import PPO

from cbo_gym.integrations.sb3 import VecEnv

train, test = (VecEnv("CBO/PSAContextual2-v0", num_envs=count, seed=seed) for count, seed in ((64, 0), (1024, 1)))
model = PPO("MultiInputPolicy", train, gamma=0.0, n_steps=8, batch_size=128, learning_rate=3e-3, seed=0)


def mean_reward():
    return test.step(model.predict(test.reset(), deterministic=True)[0])[1].mean()


before = mean_reward()
model.learn(8_000)
assert mean_reward() > before + 0.1
