"""Adversarial mode: an adversary sets some parameters of the mechanisms; the agent observes them after the round."""

from cbo_gym.modes.adversarial.dynamics import AdversarialDynamics
from cbo_gym.modes.adversarial.interface import AdversarialInterface
from cbo_gym.modes.adversarial.oracle import AdversarialOracle

INTERFACE, DYNAMICS, ORACLE = AdversarialInterface, AdversarialDynamics, AdversarialOracle
