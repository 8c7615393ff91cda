"""What the world is: causal diagrams, exogenous noise, structural causal models."""

from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.intervention import Intervention
from cbo_gym.scm.model import StructuralCausalModel, Variable
from cbo_gym.scm.noise import Arcsine, Distribution, GaussianMixture, Normal, Uniform, Zero

__all__ = [
    "Arcsine",
    "CausalDiagram",
    "Distribution",
    "GaussianMixture",
    "Intervention",
    "Normal",
    "StructuralCausalModel",
    "Uniform",
    "Variable",
    "Zero",
]
