# requires: pgmpy
# task: the diagram there and back, and its independencies
from pgmpy.base import DAG

import cbo_gym
from cbo_gym.scm import CausalDiagram

diagram = cbo_gym.make_task("CBO/PSAGraph-v0").diagram
dag = DAG(diagram.to_networkx().edges)
assert CausalDiagram.from_pgmpy(dag) == diagram
first, *_, last = diagram.topological_order
given = set(diagram.parents(last)) - {first}
assert dag.is_dconnected(first, last, observed=given) != diagram.m_separated([first], [last], given)
