"""Subset mode: soft actions of zeros and ones, the subset of the parameters that are at their upper end."""

from cbo_gym.modes.oracles import shared_oracle
from cbo_gym.modes.subset.dynamics import SubsetDynamics
from cbo_gym.modes.subset.interface import SubsetInterface

INTERFACE, DYNAMICS, ORACLE = SubsetInterface, SubsetDynamics, shared_oracle
