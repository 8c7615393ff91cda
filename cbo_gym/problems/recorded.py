"""Recorded optima of registered environments."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cbo_gym._util.validation import StrictModel


class RecordedOptimum(StrictModel):
    """The optimum of E[Y | action] as ``command`` computed it; in contextual mode of E[Y] over all policies.

    ``action`` holds coordinates in [0, 1] in soft mode; the lower and then the upper corner of a point-like cell in
    aggregated mode; native values or labels by name in hard and discrete mode and for named parameters; the super arm
    of 0 and 1 in masked mode; and the policy in words in contextual mode.
    ``random_value`` is the mean of E[Y | action] over random actions, as the action space samples them.

    With several objectives ``action`` is a list of actions along the Pareto front, and ``front`` the list of their
    expected reward vectors. Then ``value`` is the hypervolume of the front above ``reference``, and ``random_value``
    the mean hypervolume of a single random action.
    """

    value: float
    action: list[float] | dict[str, float | str] | str | list[dict[str, float]] | list[list[float]]
    standard_error: Annotated[float, Field(ge=0)]
    random_value: float
    random_standard_error: Annotated[float, Field(ge=0)]
    command: str
    reference: list[float] = []
    front: list[list[float]] = []
