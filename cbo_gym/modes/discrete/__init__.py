"""Discrete mode: the action is one of a list of interventions."""

from cbo_gym.modes.discrete.dynamics import DiscreteDynamics
from cbo_gym.modes.discrete.interface import DiscreteInterface
from cbo_gym.modes.oracles import shared_oracle

INTERFACE, DYNAMICS, ORACLE = DiscreteInterface, DiscreteDynamics, shared_oracle
