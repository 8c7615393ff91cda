"""Dynamic mode: a system unrolled over time slices, each with trials, the last of which is implemented."""

from cbo_gym.modes.dynamic.dynamics import DynamicDynamics
from cbo_gym.modes.dynamic.interface import DynamicInterface
from cbo_gym.modes.dynamic.oracle import DynamicOracle

INTERFACE, DYNAMICS, ORACLE = DynamicInterface, DynamicDynamics, DynamicOracle
