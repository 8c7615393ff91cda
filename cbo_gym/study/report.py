"""A study as one HTML file that needs no network: the diagram, the curve, the recommendation, the trials."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cbo_gym.drawing import Box, Picture
from cbo_gym.drawing.html import facts, svg_of, table
from cbo_gym.envs.picture import COLOURS, roles_of
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.report.plots import on_paper, round_axis
from cbo_gym.files import write_text
from cbo_gym.study.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
:root {{ color-scheme: light dark }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }}
table {{ border-collapse: collapse; display: block; overflow-x: auto }}
th, td {{ border-bottom: 1px solid #8884; padding: .2rem .7rem; white-space: nowrap }}
svg {{ background: #fff; height: auto; max-width: 100% }}
</style></head><body><main>
{body}
</main></body></html>
"""
BLUE, GREY = "#0072B2", "#777777"


def write_report(study: Study, path: Path | str) -> Path:
    """Write the report of a study.

    Args:
        study: whose it is.
        path: of the HTML file.

    Raises:
        OperationError: if it cannot be written.
    """
    about = study.about
    told = [entry for entry in study.trials if entry.status == "told"]
    parts = [
        facts(
            about.name,
            [
                ("reward", f"{about.reward}{_unit(study, about.reward)}, {about.direction}"),
                ("agent", about.agent),
                ("mode", about.mode),
                ("trials", f"{len(study.trials)} of {about.horizon} planned, {len(told)} told"),
                ("constraints", ", ".join(about.constraints) or "-"),
            ],
        ),
        svg_of(_diagram(study).figure) if study.diagram is not None else "",
        svg_of(curve(study)) if told else "",
        _recommendation(study) if told else "",
        _trials(study),
    ]
    write_text(Path(path), PAGE.format(title=escape(about.name), body="\n".join(parts)))
    return Path(path)


def _unit(study: Study, name: str) -> str:
    return f" [{study.about.units[name]}]" if name in study.about.units else ""


def _diagram(study: Study) -> Picture:
    assert study.diagram is not None
    return Picture(
        study.diagram, {name: Box(None, (), COLOURS[role]) for name, role in roles_of(study.feedback).items()}
    )


@on_paper
def curve(study: Study) -> Figure:
    """The reward of each trial, and the best so far.

    Raises:
        ArgumentError: if none was told.
    """
    from matplotlib.figure import Figure

    about = study.about
    told = [entry for entry in study.trials if entry.status == "told"]
    if not told:
        raise ArgumentError("no trial was told yet, so there is no curve")
    numbers = [entry.number for entry in told]
    rewards = np.array([entry.values[about.reward] for entry in told], dtype=float)
    best = np.maximum.accumulate(rewards) if about.direction == "maximize" else np.minimum.accumulate(rewards)
    figure = Figure(figsize=(7.0, 2.6), layout="constrained")
    axis = figure.add_subplot()
    axis.plot(numbers, rewards, "o", color=GREY, label="trial")
    axis.step(numbers, best, where="post", color=BLUE, label="best so far")
    round_axis(axis)
    axis.set(xlabel="Trial", ylabel=f"{about.reward}{_unit(study, about.reward)}", xlim=(0.5, numbers[-1] + 0.5))
    figure.legend(loc="outside upper right", ncols=2)
    return figure


def _recommendation(study: Study) -> str:
    done = study.recommendation()
    rows = [[f"set {name}{_unit(study, name)}", _text(value)] for name, value in done.items()] or [["set", "nothing"]]
    try:
        rows += [[f"expected {name}{_unit(study, name)}", _text(value)] for name, value in study.what_if(done).items()]
    except Exception as error:  # an agent of somebody else's may have no beliefs
        rows.append(["expected", f"the agent does not say ({type(error).__name__})"])
    return table("Recommended now", ["", ""], rows)


def _trials(study: Study) -> str:
    frame = study.to_frame()
    rows = [[_text(value) for value in row] for row in frame.iter_rows()]
    return table("Trials", [f"{name}{_unit(study, name)}" for name in frame.columns], rows)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
