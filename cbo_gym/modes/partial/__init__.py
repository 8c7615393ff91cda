"""Partial mode: the nodes of a function network are bought one at a time."""

from cbo_gym.modes.partial.dynamics import PartialDynamics
from cbo_gym.modes.partial.interface import PartialInterface
from cbo_gym.modes.partial.oracle import PartialOracle

INTERFACE, DYNAMICS, ORACLE = PartialInterface, PartialDynamics, PartialOracle
