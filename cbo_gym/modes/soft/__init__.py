"""Soft mode: the action is the vector of the mechanisms' parameters."""

from cbo_gym.modes.oracles import shared_oracle
from cbo_gym.modes.soft.dynamics import SoftDynamics
from cbo_gym.modes.soft.interface import SoftInterface

INTERFACE, DYNAMICS, ORACLE = SoftInterface, SoftDynamics, shared_oracle
