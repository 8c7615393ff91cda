"""Pictures of diagrams: layout, and drawing by Matplotlib, which is imported for the first picture.

It does not import systems or environments, because the module of diagrams imports it.
"""

from cbo_gym._util.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
