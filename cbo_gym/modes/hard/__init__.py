"""Hard mode: the action chooses a set of variables, the target set, and the values to which they are set."""

from cbo_gym.modes.hard.dynamics import HardDynamics
from cbo_gym.modes.hard.interface import HardInterface
from cbo_gym.modes.oracles import shared_oracle

INTERFACE, DYNAMICS, ORACLE = HardInterface, HardDynamics, shared_oracle
