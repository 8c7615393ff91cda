"""Subset mode: the action is the subset of parameters at the upper end of their domains, others at the lower end."""

from cbo_gym.modes.oracles import shared_oracle
from cbo_gym.modes.subset.dynamics import SubsetDynamics
from cbo_gym.modes.subset.interface import SubsetInterface

INTERFACE, DYNAMICS, ORACLE = SubsetInterface, SubsetDynamics, shared_oracle
