"""Masked mode: the action is a super arm, the set of base arms whose random signals reach the system."""

from cbo_gym.modes.masked.dynamics import MaskedDynamics
from cbo_gym.modes.masked.interface import MaskedInterface
from cbo_gym.modes.oracles import shared_oracle

INTERFACE, DYNAMICS, ORACLE = MaskedInterface, MaskedDynamics, shared_oracle
