"""Pictures of diagrams: layout, and drawing by Matplotlib, which is imported for the first picture.

It imports nothing of systems and environments, so that diagrams themselves can be plotted.
"""

from cbo_gym._util.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
