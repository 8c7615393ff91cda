"""Gymnasium environments: a scalar and a vectorised class, which play any feedback."""

from cbo_gym.envs.scalar import CausalBanditEnv
from cbo_gym.envs.vector import CausalBanditVectorEnv

__all__ = ["CausalBanditEnv", "CausalBanditVectorEnv"]
