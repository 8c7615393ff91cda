# requires: cloudpickle
# task: environments, tasks, runs and leaderboards go to other processes
import pickle

import gymnasium as gym

import cbo_gym

env = gym.make("CBO/ToyGraph-v0")
env.reset(seed=0)
other = pickle.loads(pickle.dumps(env))
action = {"target": 1, "values": [0.2, 0.5]}
assert env.step(action)[1] == other.step(action)[1]
task = cbo_gym.make_task(env)
run = cbo_gym.evaluate("Random", env, 0, horizon=3)
board = cbo_gym.leaderboard([run])
for thing in (task, run, board):
    assert pickle.loads(pickle.dumps(thing)) is not None
