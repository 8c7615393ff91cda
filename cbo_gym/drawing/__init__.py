"""Pictures of causal diagrams, drawn by Matplotlib, which is imported for the first picture.

This package does not import systems or environments, because ``CausalDiagram`` imports it.
"""

from cbo_gym._util.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
