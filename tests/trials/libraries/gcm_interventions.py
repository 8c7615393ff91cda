# requires: dowhy
# task: a model fitted to data answers do()
from dowhy import gcm

import cbo_gym

task = cbo_gym.make_task("CBO/ToyGraph-v0")
model = gcm.StructuralCausalModel(task.diagram.to_networkx())
data = cbo_gym.sample("CBO/ToyGraph-v0", 2_000).to_pandas()
gcm.auto.assign_causal_mechanisms(model, data)
gcm.fit(model, data)
target = task.nodes[0]
value = float(data[target].mean())
drawn = gcm.interventional_samples(model, {target: lambda _: value}, num_samples_to_draw=2_000)
truth = cbo_gym.sample("CBO/ToyGraph-v0", 20_000, do={target: value})
assert abs(drawn[task.reward].mean() - truth[task.reward].mean()) < 0.2
