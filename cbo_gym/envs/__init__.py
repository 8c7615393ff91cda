"""Gymnasium environments: a scalar and a vectorised class, which play any mode."""

from cbo_gym._util.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
