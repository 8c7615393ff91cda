"""Hard mode: the action chooses a target set and the values of its variables."""

from cbo_gym.modes.hard.dynamics import HardDynamics
from cbo_gym.modes.hard.interface import HardInterface
from cbo_gym.modes.oracles import shared_oracle

INTERFACE, DYNAMICS, ORACLE = HardInterface, HardDynamics, shared_oracle
