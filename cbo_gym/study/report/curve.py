"""The curve of a study: the reward of each round, and the best so far with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import t as student

from cbo_gym.evaluation.report.plots import round_axis
from cbo_gym.study.expectation import Band
from cbo_gym.study.report.markup import number, paragraph, section
from cbo_gym.study.report.mind import Mind
from cbo_gym.study.report.naming import with_unit
from cbo_gym.study.report.rounds import Seen, reward_of, seen_rounds
from cbo_gym.study.report.svg import BLUE, GREY, ORANGE, image, page_style
from cbo_gym.study.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINDOW = 10  # trials of a running mean
BEFORE = 0.18  # of the width of the trials, for imported data


class Course(NamedTuple):
    """How it went from round to round.

    Attributes:
        name: of the line.
        band: of each round; without an interval where ``low`` and ``high`` are the mean.
        said: what the line and the interval are, a sentence.
    """

    name: str
    band: Band
    said: str


def curve_section(study: Study, mind: Mind) -> str:
    """The curve, once a trial was told."""
    rounds = seen_rounds(study)
    if not any(one.number for one in rounds):
        return ""
    course = _course(study, mind, rounds)
    with page_style():
        drawn = image(_figure(study, rounds, course), _heard(study, course))
    said = f"{course.said}{_others(study, rounds)}"
    return section("curve", "Progress", f'<figure class="curve">{drawn}</figure>', paragraph(said, "note"))


def _course(study: Study, mind: Mind, rounds: list[Seen]) -> Course:
    reward = study.about.reward
    if study.about.mode == "contextual":
        return Course(
            f"mean of {WINDOW} rounds",
            _running_mean([reward_of(study, one) for one in rounds]),
            f"What is best depends on the context, so the line is the mean {reward} of the last {WINDOW} rounds, with "
            "a 95 % interval by Student's t from the third on.",
        )
    allowed = [index for index, one in enumerate(rounds) if not study._units.misses(one.values)]
    band = mind.rewards([one.action for one in rounds]) if mind.agent is not None else None
    if band is None:
        rewards = np.array([reward_of(study, one) for one in rounds])
        leaders = _leaders(study, rewards, allowed)
        said = f"The line is the best {reward} seen so far; {study.about.agent} has no model that tells how sure it is."
        return Course("best so far", Band(*(rewards[leaders],) * 3), said)
    leaders = _leaders(study, band.mean, allowed)
    said = (
        f"The line is the expected {reward} of the best action tried so far, with its 95 % interval, both by what the "
        "agent knows today: it may lie below the highest dots, which luck has lifted."
    )
    return Course("best so far", Band(*(part[leaders] for part in band)), said)


def _leaders(study: Study, values: np.ndarray, allowed: list[int]) -> np.ndarray:
    """For each round the place of the best up to there; of those that meet the constraints, once there are any."""
    worth = -values if study.about.direction == "minimize" else values.copy()
    forbidden = np.setdiff1d(np.arange(len(worth)), allowed)
    worth[forbidden] -= 2.0 * np.ptp(worth) + 1.0
    before = np.append(-np.inf, np.maximum.accumulate(worth)[:-1])
    return np.maximum.accumulate(np.where(worth > before, np.arange(len(worth)), 0))


def _running_mean(rewards: list[float]) -> Band:
    means, halves = [], []
    for place in range(1, len(rewards) + 1):
        last = np.array(rewards[max(0, place - WINDOW) : place])
        means.append(last.mean())
        error = last.std(ddof=1) / np.sqrt(len(last)) if len(last) > 2 else np.nan
        halves.append(error * student.ppf(0.975, max(len(last) - 1, 1)))
    mean, half = np.array(means), np.nan_to_num(np.array(halves))
    return Band(mean, mean - half, mean + half)


def _others(study: Study, rounds: list[Seen]) -> str:
    text = ""
    if any(one.number is None for one in rounds):
        text += " Left of the first trial are the imported data, in their order."
    if any(study._units.misses(one.values) for one in rounds):
        text += " Crosses are rounds whose measured values miss a constraint, which do not count as best."
    return text


def _heard(study: Study, course: Course) -> str:
    low, mean, high = (number(float(part[-1])) for part in (course.band.low, course.band.mean, course.band.high))
    return f"{study.about.reward} by trial; {course.name} now {mean}, 95 % interval {low} to {high}"


def _figure(study: Study, rounds: list[Seen], course: Course) -> Figure:
    from matplotlib.figure import Figure

    places = _places(rounds)
    rewards = np.array([reward_of(study, one) for one in rounds])
    missed = np.array([study._units.misses(one.values) for one in rounds])
    figure = Figure(figsize=(4.3, 2.7), layout="constrained")
    axis = figure.add_subplot()
    axis.fill_between(places, course.band.low, course.band.high, step="post", color=BLUE, alpha=0.2, linewidth=0)
    axis.step(places, course.band.mean, where="post", color=BLUE, label=course.name)
    axis.plot(places[~missed], rewards[~missed], "o", color=GREY, markersize=3.5, alpha=0.8, label="round")
    if missed.any():
        axis.plot(places[missed], rewards[missed], "x", color=ORANGE, markersize=4.5, label="misses a constraint")
    round_axis(axis)
    if rounds[0].number is None:
        axis.axvline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    last = max(one.number or 1 for one in rounds)
    axis.set(xlabel="Trial", ylabel=with_unit(study, study.about.reward), xlim=(places[0] - 0.5, last + 0.5))
    axis.set_xticks([tick for tick in axis.get_xticks() if 1 <= tick <= last])
    figure.legend(loc="outside upper left", ncols=3, handlelength=1.6, columnspacing=1.2)
    return figure


def _places(rounds: list[Seen]) -> np.ndarray:
    """Where rounds lie: trials at their numbers, imported data evenly in a strip before the first."""
    numbers = [one.number for one in rounds if one.number is not None]
    imported = len(rounds) - len(numbers)
    width = min(float(imported), max(1.0, BEFORE * max(numbers)))
    return np.array([*(np.linspace(-width, 0.0, imported + 1)[1:]), *numbers])
