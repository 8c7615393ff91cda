"""The curve of the study: the reward of each trial, and the best so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cbo_gym.drawing.html import svg_of
from cbo_gym.evaluation.report.plots import on_paper, round_axis
from cbo_gym.study.report.markup import section
from cbo_gym.study.report.naming import with_unit
from cbo_gym.study.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, GREY = "#0072B2", "#777777"


def curve_section(study: Study) -> str:
    """The curve, where a trial was told."""
    if not any(entry.status == "told" for entry in study.trials):
        return ""
    return section("curve", "Progress", svg_of(curve(study)))


@on_paper
def curve(study: Study) -> Figure:
    """The reward of each trial, and the best so far."""
    from matplotlib.figure import Figure

    about = study.about
    told = [entry for entry in study.trials if entry.status == "told"]
    numbers = [entry.number for entry in told]
    rewards = np.array([entry.values[about.reward] for entry in told], dtype=float)
    best = np.maximum.accumulate(rewards) if about.direction == "maximize" else np.minimum.accumulate(rewards)
    figure = Figure(figsize=(7.0, 2.6), layout="constrained")
    axis = figure.add_subplot()
    axis.plot(numbers, rewards, "o", color=GREY, label="trial")
    axis.step(numbers, best, where="post", color=BLUE, label="best so far")
    round_axis(axis)
    axis.set(xlabel="Trial", ylabel=with_unit(study, about.reward), xlim=(0.5, numbers[-1] + 0.5))
    figure.legend(loc="outside upper right", ncols=2)
    return figure
