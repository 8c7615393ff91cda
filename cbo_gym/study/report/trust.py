"""The sections "When to stop" and "How far to trust the forecasts".

For the second, the agent predicts each measured value from all other rounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.study.report.snapshot import Snapshot
from cbo_gym.study.report.svg import BLUE, GREY, ORANGE, image, page_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cbo_gym.agent import LeaveOneOut

# Width and height of a figure in inches.
PANEL = (3.35, 2.5)
# Largest number of variables with a figure.
MAX_PANELS = 12


def stopping(snapshot: Snapshot) -> dict[str, Any]:
    """Return facts and notes on when to stop."""
    try:
        result = snapshot.study.stopping(context=snapshot.context)
    # A variable that the agent needs was not measured.
    except ArgumentError as error:
        return {"facts": [], "notes": [str(error)]}
    notes = [f"{result.reason[:1].upper()}{result.reason[1:]}." if result.reason else ""]
    if result.probability is not None:
        reward = snapshot.with_unit(snapshot.units.objectives[0])
        notes.append(
            f"Both are from the agent's model. An action is better if its expected {reward} is, and if it is within "
            "the limits and meets the constraints in expectation; it is compared with the recommendation. The next "
            f"trial is {snapshot.words(result.do or {})}. Suggestions go on in any case."
        )
    if result.spending is not None:
        notes.append("Failed trials cost as much as others; rejected ones and imported data cost nothing.")
    return {"facts": result.facts, "notes": notes}


def trust(snapshot: Snapshot) -> dict[str, Any] | str:
    """Return a table and figures of the leave-one-out predictions; a sentence if the agent has none."""
    agent, categories = snapshot.agent, snapshot.units.categories
    if agent is None:
        return snapshot.no_predictions
    predictions_of = agent.leave_one_out() if hasattr(agent, "leave_one_out") else {}
    numbers = [name for name in snapshot.study.interface.nodes if name in predictions_of and name not in categories]
    by_name = {
        name: _native(snapshot, name, predictions_of[name]) for name in numbers if len(predictions_of[name].values) > 1
    }
    if not by_name:
        return f"{snapshot.description.agent} has no models whose predictions can be compared with the rounds."
    rows = [
        [
            snapshot.with_unit(name),
            len(predictions.values),
            float(np.sqrt(np.mean(np.square(predictions.values - predictions.predictions)))),
            f"{int(predictions.covered.sum())} of {len(predictions.values)}",
        ]
        for name, predictions in by_name.items()
    ]
    panels = []
    with page_style():
        for predictions, (title, *_, covered) in zip([*by_name.values()][:MAX_PANELS], rows, strict=False):
            figure = image(_panel(predictions), f"{title}: {covered} values in their intervals")
            panels.append({"title": title, "figure": figure})
    return {"rows": rows, "panels": panels}


def _native(snapshot: Snapshot, name: str, result: LeaveOneOut) -> LeaveOneOut:
    """Convert predictions of a variable to the study's units; only those of a single reward are in others."""
    units = snapshot.units
    if units.objectives != (name,):
        return result
    low, high = units.to_ends(result.predictions - result.half_widths, result.predictions + result.half_widths)
    values, predictions = units.to_values(result.values), units.to_values(result.predictions)
    return result._replace(values=values, predictions=predictions, half_widths=(high - low) / 2)


def _panel(prediction: LeaveOneOut) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=PANEL, layout="constrained")
    axis = figure.add_subplot()
    for shown, colour, marker in ((prediction.covered, BLUE, "o"), (~prediction.covered, ORANGE, "D")):
        axis.errorbar(
            prediction.values[shown],
            prediction.predictions[shown],
            prediction.half_widths[shown],
            fmt=marker,
            color=colour,
            markersize=3.5,
            elinewidth=1.0,
            alpha=0.7,
        )
    ends = float(prediction.values.min()), float(prediction.values.max())
    axis.plot(ends, ends, color=GREY, linewidth=0.8, linestyle=":")
    axis.set(xlabel="measured", ylabel="predicted from the others")
    return figure
