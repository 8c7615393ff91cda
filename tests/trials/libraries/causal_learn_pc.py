# requires: causal-learn
# task: PC finds the skeleton from samples
from causallearn.search.ConstraintBased.PC import pc

import cbo_gym

data = cbo_gym.sample("CBO/Alpine2-Noisy-Hard-v0", 2_000)
found = pc(data.to_numpy(), show_progress=False).G.graph
pairs = {frozenset((i, j)) for i in range(len(found)) for j in range(len(found)) if found[i, j]}
diagram = cbo_gym.make_task("CBO/Alpine2-Noisy-Hard-v0").diagram
assert pairs == {frozenset(map(data.columns.index, pair)) for pair in diagram.directed}
