"""Aggregated mode: the action is a cell of the parameter box, the feedback a mean over it."""

from cbo_gym.modes.aggregated.dynamics import AggregatedDynamics
from cbo_gym.modes.aggregated.interface import AggregatedInterface
from cbo_gym.modes.oracles import shared_oracle

INTERFACE, DYNAMICS, ORACLE = AggregatedInterface, AggregatedDynamics, shared_oracle
