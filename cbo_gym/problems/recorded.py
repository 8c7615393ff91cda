"""The optima that ``envs_registry.yaml`` records for registered environments, from which regret is computed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cbo_gym._util.validation import StrictModel


class RecordedOptimum(StrictModel):
    """The optimum of an environment, as ``command`` computed it.

    ``value`` is the largest E[Y | action]; in contextual mode it is the largest E[Y] of any policy.
    ``random_value`` is the mean of E[Y | action] over random actions, as the action space samples them.
    ``action`` attains ``value``. In soft mode it holds coordinates in [0, 1], and if the parameters have names, native
    values by name. In aggregated mode it holds the lower and then the upper corner of a cell that is nearly a point; in
    hard and discrete mode native values or labels by name; in masked mode a 0 or 1 for each base arm; and in contextual
    mode the policy in words.

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
