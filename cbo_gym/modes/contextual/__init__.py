"""Contextual mode: after seeing the round's context, the action chooses a scope and the values of its variables.

A scope is a set of variables to set, each with the contexts on which its value may depend.
"""

from cbo_gym.modes.contextual.dynamics import ContextualDynamics
from cbo_gym.modes.contextual.interface import ContextualInterface
from cbo_gym.modes.contextual.oracle import ContextualOracle

INTERFACE, DYNAMICS, ORACLE = ContextualInterface, ContextualDynamics, ContextualOracle
