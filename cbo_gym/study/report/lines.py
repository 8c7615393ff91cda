"""Beliefs along lines through the action space: one coordinate moves, the others stay where they are best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from cbo_gym.actions.codec import UNSET, BoxCodec, CellCodec, ChoiceCodec
from cbo_gym.study.expectation import Band
from cbo_gym.study.report.markup import number
from cbo_gym.study.report.mind import Mind
from cbo_gym.study.report.naming import choice_name, with_unit
from cbo_gym.study.report.rounds import Seen, reward_of, seen_rounds
from cbo_gym.study.study import Study
from cbo_gym.task import Action

POINTS = 31  # of a line
COARSE = 3  # of one that is only to tell how much depends on the coordinate
CANDIDATES = 128  # random points of a set, among which its best action is sought
MOST_LINES = 12
Place = Callable[[np.ndarray], Action]  # a point of the unit box to the action


class Line(NamedTuple):
    """Beliefs along one coordinate.

    Attributes:
        title: which set, scope or parameter.
        axis: name and unit of the coordinate; empty where there is none, for a set without variables.
        held: what stays as it is, in words.
        points: native values of the coordinate, ascending.
        band: what is believed there.
        at: the native value in the best believed action.
        seen: native values and rewards of the rounds played with this set.
    """

    title: str
    axis: str
    held: str
    points: np.ndarray
    band: Band
    at: float
    seen: list[tuple[float, float]]


def lines_of(study: Study, mind: Mind) -> list[Line] | None:
    """One line for each parameter or for each set or scope that is shown; None where nothing is believed.

    Of a set it is the line along the variable on which most depends.
    """
    codec = study.feedback.codec
    if isinstance(codec, ChoiceCodec):
        return list(_of_sets(study, mind, codec)) or None
    return _of_parameters(study, mind)


def shown_sets(study: Study) -> list[int]:
    """The sets or scopes that are shown: at most :data:`MOST_LINES`, those that were tried most."""
    codec = study.feedback.codec
    assert isinstance(codec, ChoiceCodec)
    tried = Counter(int(one.action[codec.key]) for one in seen_rounds(study))
    return sorted(sorted(range(len(codec.sets)), key=lambda index: -tried[index])[:MOST_LINES])


def _of_sets(study: Study, mind: Mind, codec: ChoiceCodec) -> Iterator[Line]:
    rounds = seen_rounds(study)
    for index in shown_sets(study):
        members = codec.sets[index]
        own = [one for one in rounds if int(one.action[codec.key]) == index]
        places = [place for place, name in enumerate(codec.domains.names) if name in members]

        def action(point: np.ndarray, index: int = index, places: list[int] = places) -> Action:
            values = np.full(len(codec.domains), UNSET)
            values[places] = point
            return {codec.key: np.int64(index), "values": values}

        title = choice_name(study, index)
        if not places:
            band = mind.rewards([action(np.empty(0))])
            if band is not None:
                yield Line(title, "", "", np.empty(0), band, np.nan, [(0.0, reward_of(study, one)) for one in own])
            continue
        played = [np.asarray(one.action["values"])[places].clip(0.0, 1.0) for one in own]
        best = _best_point(mind, action, len(places), played)
        if best is None:
            continue
        steepest = max(range(len(places)), key=lambda place: _spread(mind, action, best, place, COARSE))
        yield _line(study, mind, title, action, best, steepest, places, own)


def _of_parameters(study: Study, mind: Mind) -> list[Line] | None:
    codec = study.feedback.codec
    shape: Place
    if isinstance(codec, CellCodec):
        best_cell = np.asarray(mind.agent.recommend())
        best, width = best_cell.mean(axis=0), best_cell[1] - best_cell[0]

        def shape(point: np.ndarray) -> Action:
            middle = np.clip(point, width / 2, 1 - width / 2)
            return np.stack([middle - width / 2, middle + width / 2])

    elif isinstance(codec, BoxCodec):
        best = np.asarray(mind.agent.recommend(), dtype=float).clip(0.0, 1.0)

        def shape(point: np.ndarray) -> Action:
            return point

    else:
        return None
    if mind.rewards([shape(best)]) is None:
        return None
    rounds, places = seen_rounds(study), list(range(len(best)))
    if len(places) > MOST_LINES:
        places.sort(key=lambda place: -_spread(mind, shape, best, place, COARSE))
    names = codec.domains.names
    return [
        _line(study, mind, names[place], shape, best, place, list(range(len(best))), rounds)
        for place in sorted(places[:MOST_LINES])
    ]


def _best_point(mind: Mind, action: Place, dim: int, played: list[np.ndarray]) -> np.ndarray | None:
    """The best of random points and those played, moved along each coordinate in turn; None without beliefs."""
    points = [*np.random.default_rng(0).random((CANDIDATES, dim)), *played]
    band = mind.rewards([action(point) for point in points])
    if band is None:
        return None
    best = points[mind.best(band)].copy()
    for place in range(dim):
        along = _along(best, place, POINTS)
        moved = mind.rewards([action(point) for point in along])
        assert moved is not None
        best = along[mind.best(moved)]
    return best


def _along(best: np.ndarray, place: int, count: int) -> np.ndarray:
    """Points on the line through one, the point itself among them: about ``count x dim``."""
    steps = np.unique(np.append(np.linspace(0.0, 1.0, count), best[place]))
    along = np.repeat(best[None], len(steps), axis=0)
    along[:, place] = steps
    return along


def _spread(mind: Mind, action: Place, best: np.ndarray, place: int, count: int) -> float:
    band = mind.rewards([action(point) for point in _along(best, place, count)])
    return 0.0 if band is None else float(np.ptp(band.mean))


def _line(
    study: Study,
    mind: Mind,
    title: str,
    action: Place,
    best: np.ndarray,
    place: int,
    places: list[int],
    rounds: list[Seen],
) -> Line:
    """The line along ``best[place]``, which is the coordinate ``places[place]`` of the action."""
    domains = study.feedback.codec.domains
    along = _along(best, place, POINTS)
    band = mind.rewards([action(point) for point in along])
    assert band is not None
    scale, name = domains.scales[places[place]], domains.names[places[place]]
    held = [
        f"{domains.names[own]} = {number(float(domains.scales[own].to_native(best[other])))}"
        for other, own in enumerate(places)
        if other != place
    ]
    seen = [(float(scale.to_native(_coordinate(one.action, places[place]))), reward_of(study, one)) for one in rounds]
    native = np.array([float(scale.to_native(step)) for step in along[:, place]])
    at = float(scale.to_native(best[place]))
    return Line(title, with_unit(study, name), ", ".join(held), native, band, at, seen)


def _coordinate(action: Any, place: int) -> float:
    """One coordinate of an action in the unit box: of a cell its middle."""
    if isinstance(action, dict):
        return float(action["values"][place])
    return float(np.asarray(action)[..., place].mean())
