"""Task: all that an agent is allowed to know about the environment that it plays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from cbo_gym.scm.components import Component
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.noise import Distribution, DistributionFamily

Action = Any  # an element of the task's action space
Observation = dict[str, np.ndarray]
Interval = tuple[float, float]


class Mode(StrEnum):
    """The feedback modes: what an action means and what comes back."""

    SOFT = "soft"
    HARD = "hard"
    CONTEXTUAL = "contextual"
    AGGREGATED = "aggregated"
    MASKED = "masked"


class Round(NamedTuple):
    """One played round: the action, the semi-bandit observation that it gave, and the reward."""

    action: Action
    observation: Observation
    reward: float


@dataclass(frozen=True)
class Task:
    """What an agent is told at ``reset``. It holds no mechanism, no environment and no optimum.

    Args:
        env_id: id of the environment.
        mode: its feedback mode.
        diagram: the causal diagram over the observed variables; latent confounding as bidirected edges.
        nodes: the observed variables in the order of ``observation["nodes"]``, the reward last.
        reward: name of the reward variable.
        horizon: number of rounds.
        action_space: as the environment's; actions are in [0, 1] per coordinate.
        observation_space: as the environment's.
        action_nodes: soft, aggregated and masked mode: node -> indices of the action coordinates that enter its
            mechanism. In a separable SEM base arm i belongs to node i: ``nodes[i]`` is ``y[i]``, fed by
            ``observation["exogenous"][i]``.
        action_domains: soft and aggregated mode: native ``(low, high)`` of each coordinate.
        null_action: soft mode: the action that counts as no intervention.
        max_interventions: soft mode: how many coordinates may differ from ``null_action``; None if all.
        manipulable: hard mode: variable -> native ``(low, high)``, in the order of the action's ``values``.
        targets: hard mode: the target sets, in the order of the action's ``target``; one is empty.
        arity: aggregated mode: the number K of parts into which a cell is split.
        representative_points: aggregated mode: the number S of points over which feedback is the mean.
        integral: aggregated mode: feedback is the mean over the whole cell instead.
        kernel: aggregated mode: ``(lengthscale, variance)`` of the squared-exponential kernel of a zero-mean Gaussian
            process over [0, 1] coordinates from which the reward function is drawn, where the method's paper takes it
            as known; else None.
        super_arm_size: masked mode: the largest number s of base arms in a super arm; N is ``len(action_domains)``.
        signal_range: masked mode: an interval that holds the signals b of all base arms.
        signal_family: masked mode: the family of distributions and the ranges of parameters from which those of the
            signals were drawn, for methods whose paper takes them as a known prior; else None.
        components: masked mode: one function of each family that the equations ``y = F(y) + z`` are made of, up to
            factors (which are not told, nor which edge has which); empty where the equations are not of that kind.
        noise: variable -> exogenous distribution, for methods whose paper takes it as known; None where agents
            are not told.
        composition: the reward as a known function of the other nodes (name -> array or tensor), or None. The payoff
            h of a separable SEM, which is always known.
        initial_data: rounds that every agent of one seed is given before it acts.
    """

    env_id: str
    mode: Mode
    diagram: CausalDiagram
    nodes: tuple[str, ...]
    reward: str
    horizon: int
    action_space: spaces.Space[Any]
    observation_space: spaces.Space[Any]
    action_nodes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    action_domains: tuple[Interval, ...] = ()
    null_action: tuple[float, ...] = ()
    max_interventions: int | None = None
    manipulable: Mapping[str, Interval] = field(default_factory=dict)
    targets: tuple[frozenset[str], ...] = ()
    arity: int = 2
    representative_points: int = 1
    integral: bool = False
    kernel: tuple[float, float] | None = None
    super_arm_size: int | None = None
    signal_range: Interval = (0.0, 1.0)
    signal_family: DistributionFamily | None = None
    components: tuple[Component, ...] = ()
    noise: Mapping[str, Distribution] | None = None
    composition: Callable[[Mapping[str, Any]], Any] | None = None
    initial_data: tuple[Round, ...] = ()
