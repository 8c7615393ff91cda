"""Pictures of diagrams: layout, and drawing by Matplotlib, which is imported for the first picture.

It imports nothing of systems and environments, so that diagrams themselves can be plotted.
"""

from cbo_gym.drawing.diagram import Box, Line, Picture

__all__ = ["Box", "Line", "Picture"]
