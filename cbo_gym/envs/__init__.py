"""Gymnasium environments, one file a feedback mode."""

from cbo_gym.envs.aggregated import AggregatedEnv
from cbo_gym.envs.base import CausalBanditEnv
from cbo_gym.envs.hard import HardEnv
from cbo_gym.envs.masked import MaskedEnv
from cbo_gym.envs.soft import SoftEnv
from cbo_gym.envs.spaces import CellBox, SparseBox, SuperArmSpace

__all__ = [
    "AggregatedEnv",
    "CausalBanditEnv",
    "CellBox",
    "HardEnv",
    "MaskedEnv",
    "SoftEnv",
    "SparseBox",
    "SuperArmSpace",
]
