"""Gymnasium environments: one scalar and one vectorised class, which play any feedback."""

from cbo_gym.envs.scalar import CausalBanditEnv
from cbo_gym.envs.vector import CausalBanditVectorEnv

__all__ = ["CausalBanditEnv", "CausalBanditVectorEnv"]
