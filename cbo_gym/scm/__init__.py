"""Models of the world: causal diagrams, exogenous noise, structural causal models."""

from cbo_gym.scm.components import Component, Linear, Periodic, Polynomial, Sum, Tanh
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.guarded import GuardedModel
from cbo_gym.scm.intervention import Intervention
from cbo_gym.scm.model import StructuralCausalModel
from cbo_gym.scm.noise import (
    Arcsine,
    Discrete,
    Distribution,
    DistributionFamily,
    Empirical,
    GaussianMixture,
    Normal,
    TruncatedNormal,
    Uniform,
    Zero,
)
from cbo_gym.scm.separable import SeparableSEM, Total
from cbo_gym.scm.system import System, Variable, own_noise
from cbo_gym.scm.values import Floats

__all__ = [
    "Arcsine",
    "CausalDiagram",
    "Component",
    "Discrete",
    "Distribution",
    "DistributionFamily",
    "Empirical",
    "Floats",
    "GaussianMixture",
    "GuardedModel",
    "Intervention",
    "Linear",
    "Normal",
    "Periodic",
    "Polynomial",
    "SeparableSEM",
    "StructuralCausalModel",
    "Sum",
    "System",
    "Tanh",
    "Total",
    "TruncatedNormal",
    "Uniform",
    "Variable",
    "Zero",
    "own_noise",
]
