# requires: ax-platform
# task: Ax's ask/tell loop
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig

import cbo_gym

function = cbo_gym.botorch_function("CBO/Dropwave-v0")
client = Client(random_seed=0)
names = [f"x{place}" for place in range(function.dim)]
client.configure_experiment(
    parameters=[RangeParameterConfig(name=name, parameter_type="float", bounds=(0.0, 1.0)) for name in names]
)
client.configure_optimization(objective="reward")
for _ in range(12):
    for number, parameters in client.get_next_trials(max_trials=1).items():
        point = function.bounds.new_tensor([[parameters[name] for name in names]])
        client.complete_trial(trial_index=number, raw_data={"reward": float(function(point))})
best, *_ = client.get_best_parameterization()
assert set(best) == set(names)
