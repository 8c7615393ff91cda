"""Dynamic mode: actions in one time slice of a system after another; the last trial of a slice holds in later ones."""

from cbo_gym.modes.dynamic.dynamics import DynamicDynamics
from cbo_gym.modes.dynamic.interface import DynamicInterface
from cbo_gym.modes.dynamic.oracle import DynamicOracle

INTERFACE, DYNAMICS, ORACLE = DynamicInterface, DynamicDynamics, DynamicOracle
