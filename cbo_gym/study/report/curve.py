"""The section "Progress": the reward of each round and the best so far; with several objectives, the hypervolume."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtrit

from cbo_gym._util.fronts import hypervolume, non_dominated
from cbo_gym.evaluation.report.plots import round_axis
from cbo_gym.study.expectation import Band
from cbo_gym.study.report.snapshot import Snapshot, interval
from cbo_gym.study.report.svg import BLUE, GREY, ORANGE, image, page_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Number of rounds in a running mean.
WINDOW = 10
# Largest width of the strip of imported data left of the trials, as a share of the width of the trials.
STRIP_WIDTH = 0.18
# Distance of the reference point of hypervolumes beyond the worst values, as a share of their range.
MARGIN = 0.1


def progress(snapshot: Snapshot) -> dict[str, str] | None:
    """Return the figure and a note; None without a trial whose outcome is known."""
    if not any(played.number for played in snapshot.rounds):
        return None
    broken = np.array([snapshot.units.breaks_conditions(played.action, played.values) for played in snapshot.rounds])
    has_several_objectives = len(snapshot.units.objectives) > 1
    curve = _hypervolume(snapshot, broken) if has_several_objectives else _best(snapshot, broken)
    note = curve.note
    if any(played.number is None for played in snapshot.rounds):
        note += " Imported data are shown left of the first trial, in their order."
    if broken.any():
        conditions = {
            "constraints": "whose measured values violate a constraint",
            "limits": "whose settings break a limit",
            "limits and constraints": "whose settings break a limit or whose measured values violate a constraint",
        }
        rounds = f"rounds {conditions[snapshot.units.conditions]}"
        crosses = f" Crosses mark {rounds}; the best so far excludes them."
        note += f" The line leaves out {rounds}." if has_several_objectives else crosses
    mean, ends = interval(curve.band, -1)
    label = f"{curve.axis} by trial; {curve.name} now {mean}"
    label += "" if has_several_objectives else f", 95 % interval {ends}"
    with page_style():
        return {"figure": image(_figure(snapshot, broken, curve), label), "note": note}


class _Curve(NamedTuple):
    """The line of the figure.

    Attributes:
        name: name of the line.
        axis: title of the vertical axis.
        band: value of the line, and its interval, at each round.
        note: explanation of the line.
        rewards: reward of each round, shown as dots; None if they are not shown.
    """

    name: str
    axis: str
    band: Band
    note: str
    rewards: np.ndarray | None = None


def _hypervolume(snapshot: Snapshot, broken: np.ndarray) -> _Curve:
    names, units = snapshot.units.objectives, snapshot.units
    rewards = units.to_rewards([list(played.objectives.values()) for played in snapshot.rounds])
    worst, span = rewards.min(axis=0), np.ptp(rewards, axis=0)
    reference = worst - MARGIN * np.where(span > 0.0, span, np.maximum(np.abs(worst), 1.0))
    front, volumes = rewards[:0], []
    for reward, is_broken in zip(rewards, broken, strict=True):
        if not is_broken:
            front = np.vstack([front, reward])
            front = front[non_dominated(front)]
        volumes.append(hypervolume(front, reference))
    point = ", ".join(f"{name} = {value:.4g}" for name, value in zip(names, units.to_values(reference), strict=True))
    noun = "area" if len(names) == 2 else "volume"
    note = (
        f"The line is the {noun} between the measured rounds that are not dominated and the reference point {point}: "
        f"the worst measured values and {100 * MARGIN:g} % of their range more, so that it moves with worse rounds. "
        "Noise raises single rounds, and with them the line."
    )
    return _Curve("hypervolume so far", f"Hypervolume, {' x '.join(names)}", Band(*[np.array(volumes)] * 3), note)


def _best(snapshot: Snapshot, broken: np.ndarray) -> _Curve:
    reward, rewards = snapshot.units.objectives[0], np.array([played.reward for played in snapshot.rounds])
    axis = snapshot.with_unit(reward)
    if snapshot.study.interface.observes_before:
        note = (
            f"The best action depends on the context, so the line is the mean {reward} of the last {WINDOW} rounds, "
            "with a 95 % interval by Student's t from the third on."
        )
        return _Curve(f"mean of {WINDOW} rounds", axis, _running_mean(rewards), note, rewards)
    band = snapshot.rewards([played.action for played in snapshot.rounds]) if snapshot.agent is not None else None
    if band is None:
        agent = snapshot.description.agent
        note = f"The line is the best {reward} measured so far; {agent} has no model of its uncertainty."
        band = Band(rewards, rewards, rewards)
    else:
        note = (
            f"The line is the expected {reward} of the best action tried so far, with its 95 % interval, both by the "
            "agent's current model: it may be below the highest dots, which may be high by chance."
        )
    # Rounds that break a constraint or a limit are the best only if all rounds break one.
    ranking = snapshot.description.goals[0].sign * band.mean
    ranking[broken] -= 2.0 * np.ptp(ranking) + 1.0
    best_before = np.append(-np.inf, np.maximum.accumulate(ranking)[:-1])
    # Index of the best round so far, at each round.
    leaders = np.maximum.accumulate(np.where(ranking > best_before, np.arange(len(ranking)), 0))
    return _Curve("best so far", axis, Band(*(values[leaders] for values in band)), note, rewards)


def _running_mean(rewards: np.ndarray) -> Band:
    means, half_widths = [], []
    for end in range(1, len(rewards) + 1):
        window = rewards[max(0, end - WINDOW) : end]
        means.append(window.mean())
        error = window.std(ddof=1) / np.sqrt(len(window)) if len(window) > 2 else 0.0
        half_widths.append(error * stdtrit(max(len(window) - 1, 1), 0.975))
    mean, half_width = np.array(means), np.array(half_widths)
    return Band(mean, mean - half_width, mean + half_width)


def _figure(snapshot: Snapshot, broken: np.ndarray, curve: _Curve) -> Figure:
    from matplotlib.figure import Figure

    # A trial is at its number; imported data are evenly spaced in a strip before the first trial.
    numbers = [played.number for played in snapshot.rounds if played.number is not None]
    imported, last, band = len(broken) - len(numbers), max(numbers), curve.band
    width = min(float(imported), max(1.0, STRIP_WIDTH * last))
    positions = np.array([*np.linspace(-width, 0.0, imported + 1)[1:], *numbers])
    figure = Figure(figsize=(4.3, 2.7), layout="constrained")
    axis = figure.add_subplot()
    axis.fill_between(positions, band.low, band.high, step="post", color=BLUE, alpha=0.2, linewidth=0)
    axis.step(positions, band.mean, where="post", color=BLUE, label=curve.name)
    if curve.rewards is not None:
        axis.plot(positions[~broken], curve.rewards[~broken], "o", color=GREY, markersize=3.5, alpha=0.8, label="round")
        if broken.any():
            label = f"breaks {snapshot.units.conditions}"
            axis.plot(positions[broken], curve.rewards[broken], "x", color=ORANGE, markersize=4.5, label=label)
    round_axis(axis)
    if imported:
        axis.axvline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    axis.set(xlabel="Trial", ylabel=curve.axis, xlim=(positions[0] - 0.5, last + 0.5))
    axis.set_xticks([tick for tick in axis.get_xticks() if 1 <= tick <= last])
    figure.legend(loc="outside upper left", ncols=3, handlelength=1.6, columnspacing=1.2)
    return figure
