# requires: dowhy
# task: an effect by adjustment on the true diagram
from dowhy import CausalModel

import cbo_gym

task = cbo_gym.make_task("CBO/PSAGraph-v0")
data = cbo_gym.sample("CBO/PSAGraph-v0", 3_000).to_pandas()
model = CausalModel(data, "Statin", task.reward, graph=task.diagram.to_networkx())
estimand = model.identify_effect(proceed_when_unidentifiable=False)
estimate = model.estimate_effect(estimand, method_name="backdoor.linear_regression")
means = [cbo_gym.sample("CBO/PSAGraph-v0", 20_000, do={"Statin": dose})[task.reward].mean() for dose in (0.2, 0.8)]
assert abs(estimate.value - (means[1] - means[0]) / 0.6) < 0.3
