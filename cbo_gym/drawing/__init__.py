"""Pictures of diagrams: where nodes and edges lie, and their drawing by Matplotlib, imported for the first one.

It knows nothing of systems and environments, so that diagrams themselves can be plotted.
"""

from cbo_gym.drawing.diagram import Box, Line, Picture

__all__ = ["Box", "Line", "Picture"]
