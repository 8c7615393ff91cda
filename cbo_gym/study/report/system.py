"""The system: its diagram."""

from __future__ import annotations

from cbo_gym.drawing import Box, Picture
from cbo_gym.drawing.html import svg_of
from cbo_gym.envs.picture import COLOURS, roles_of
from cbo_gym.study.report.markup import section, wide
from cbo_gym.study.study import Study


def system_section(study: Study) -> str:
    """The diagram."""
    if study.diagram is None:
        return ""
    boxes = {name: Box(None, (), COLOURS[role]) for name, role in roles_of(study.feedback).items()}
    return section("system", "System", wide(svg_of(Picture(study.diagram, boxes).figure), "The causal diagram"))
