# requires: smac
# task: SMAC3 minimises the negative reward
from ConfigSpace import ConfigurationSpace
from smac import BlackBoxFacade, Scenario

import cbo_gym

function = cbo_gym.botorch_function("CBO/Dropwave-v0", negate=True)
space = ConfigurationSpace({f"x{place}": (0.0, 1.0) for place in range(function.dim)}, seed=0)


def cost(config, seed=0):
    return float(function(function.bounds.new_tensor([list(dict(config).values())])))


scenario = Scenario(space, n_trials=15, deterministic=True, seed=0)
best = BlackBoxFacade(scenario, cost, overwrite=True, logging_level=40).optimize()
assert cost(best) < 0.0
