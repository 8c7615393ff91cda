"""Landscapes for the pages of environments: slices of E[Y | action] through the recorded optimum, as figures."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cbo_gym.modes import make_dynamics
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.contextual.dynamics import ContextualDynamics
from cbo_gym.modes.contextual.oracle import ContextualOracle
from cbo_gym.modes.oracles import Oracle
from cbo_gym.modes.oracles.plain import Optimum
from cbo_gym.problems.recorded import RecordedOptimum
from cbo_gym.scm import Intervention
from cbo_gym.task import Mode

LINE, SIDE = 241, 73  # points of a curve, and along a side of a map
MAX_CURVES, MAX_PANELS, MAX_ARMS = 6, 6, 30
TOLERANCE = 0.005  # of expectations, as a share of the gap between optimum and random action
RESPONSES = 9  # contexts in which the best response is searched for
DARKEST = 5.0  # percentile of a map below which all values have one colour, because valleys are deep
INK, FAINT, OPTIMUM, LEVEL = "#2b3440", "#8a949e", "#d1495b", "#2f6691"
CURVES = ("#2f6691", "#d17a22", "#3a7d44", "#8e5ea2", "#b5446e", "#7a6a4f")


class CoarseOracle(Oracle):
    """An oracle with few draws. They are the same for all actions, so curves are smooth."""

    fewest_points: ClassVar[int] = 2**6


@dataclass(frozen=True)
class Curve:
    """Values along a line: ``x`` and ``y`` of one shape, and the name of the varied quantity."""

    name: str
    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Panel:
    """A panel of a landscape: either curves, or a map of ``values``, shape ``(len(y), len(x))``, or bars.

    A bar is ``(name, value, whether it counts as the first of the two kinds in the legend)``. ``best`` are the
    coordinates of the optimum, if it is in the panel, and ``path`` the best y for some x.
    """

    title: str
    x_label: str
    y_label: str = "E[Y]"
    curves: Sequence[Curve] = ()
    x: np.ndarray = field(default_factory=lambda: np.zeros(0))
    y: np.ndarray = field(default_factory=lambda: np.zeros(0))
    values: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    bars: Sequence[tuple[str, float, bool]] = ()
    legend: tuple[str, str] = ("in the best super arm", "not in it")
    best: Sequence[tuple[float, float]] = ()
    path: tuple[np.ndarray, np.ndarray] | None = None


@dataclass(frozen=True)
class Landscape:
    """Panels, their caption, and by name the expected rewards of the optimum, a random action, and some others."""

    panels: Sequence[Panel]
    caption: str
    levels: dict[str, float]


def landscape_of(dynamics: Dynamics, recorded: RecordedOptimum | None) -> Landscape | None:
    """Return the slices of an environment; None without a recorded optimum or in a mode without slices."""
    views: dict[Mode, Callable[[Dynamics, RecordedOptimum], Landscape]] = {
        Mode.SOFT: _parameters,
        Mode.AGGREGATED: _cells,
        Mode.HARD: _targets,
        Mode.MASKED: _super_arms,
        Mode.CONTEXTUAL: _contexts,
        Mode.DISCRETE: _arms,
    }
    view = _front if recorded and recorded.front else views.get(dynamics.mode)
    return view(dynamics, recorded) if view and recorded else None


def _levels(best: Optimum | RecordedOptimum) -> dict[str, float]:
    return {"optimum": best.value, "random action": best.random_value}


def _front(dynamics: Dynamics, recorded: RecordedOptimum) -> Landscape:
    """Return panels of the recorded Pareto front, one for each pair of objectives."""
    objectives = dynamics.problem.outcomes.objectives
    labels = [f"E[{'' if objective.sign > 0 else '-'}{objective.name}]" for objective in objectives]
    # A front of two objectives is a curve; one of more is a surface, which is shown by points.
    is_curve = len(labels) == 2
    panels = []
    for (x_label, x), (y_label, y) in combinations(zip(labels, np.array(recorded.front).T, strict=True), 2):
        curve = Curve("", x, y) if is_curve else Curve("", x[:0], y[:0])
        best = () if is_curve else list(zip(x.tolist(), y.tolist(), strict=True))
        panels.append(Panel("", x_label, y_label, curves=[curve], best=best))
    return Landscape(panels, "Expected rewards along the Pareto front, a panel for each pair of objectives.", {})


def _parameters(dynamics: Dynamics, recorded: RecordedOptimum) -> Landscape:
    oracle = CoarseOracle(dynamics, recorded=recorded)
    return _slices(oracle, np.asarray(oracle.optimum.action, dtype=float), recorded)


def _cells(dynamics: Dynamics, recorded: RecordedOptimum) -> Landscape:
    """Return the function of single points, whose means over cells are the feedback."""
    middle = np.mean(dynamics.codec.from_record(recorded.action), axis=0)
    return _slices(CoarseOracle(make_dynamics(dynamics.problem, Mode.SOFT)), middle, recorded)


def _slices(oracle: Oracle, best: np.ndarray, recorded: RecordedOptimum) -> Landscape:
    domains, dim = oracle.dynamics.domains, len(best)
    grid = np.linspace(0.0, 1.0, LINE if dim > 1 else 4 * LINE)
    points = np.tile(best, (dim, len(grid), 1))
    points[np.arange(dim), :, np.arange(dim)] = grid
    values = _expected_values(oracle, domains.round(points.reshape(-1, dim))).reshape(dim, -1)
    native = [domains.scales[i].to_native(grid) for i in range(dim)]
    by_span = np.argsort(-np.ptp(values, axis=1), kind="stable")
    coordinates = sorted(by_span[:MAX_CURVES].tolist())
    panels = []
    if dim > 1:
        panels.append(_map_of(oracle, best, *sorted(by_span[:2].tolist())))
    # Parameters with different domains share the axis from 0 to 1.
    is_native = len({domains.intervals[i] for i in coordinates}) == 1
    curves = [Curve(domains.names[i], native[i] if is_native else grid, values[i]) for i in coordinates]
    optima = [domains.scales[i].to_native(best[i]) if is_native else best[i] for i in coordinates]
    marked = [(float(optimum), recorded.value) for optimum in optima]
    label = domains.names[0] if dim == 1 else "one parameter" + ("" if is_native else ", in [0, 1]")
    panels.append(Panel("" if dim == 1 else "one at a time", label, curves=curves, best=marked))
    caption = "E[Y | a] of every action." if dim <= 2 else (
        "E[Y | a] where one or two parameters vary and the others stay at the optimum"
        + (f"; the {MAX_CURVES} that matter most there." if dim > MAX_CURVES else ".")
    )  # fmt: skip
    return Landscape(panels, caption, _levels(recorded))


def _expected_values(oracle: Oracle, points: np.ndarray) -> np.ndarray:
    return oracle.mean_of(oracle.dynamics.decode_batch(points), tolerance=math.inf).value


def _map_of(oracle: Oracle, best: np.ndarray, first: int, second: int) -> Panel:
    domains, side = oracle.dynamics.domains, np.linspace(0.0, 1.0, SIDE)
    points = np.tile(best, (SIDE, SIDE, 1))
    points[..., first], points[..., second] = np.meshgrid(side, side)
    values = _expected_values(oracle, domains.round(points.reshape(-1, len(best)))).reshape(SIDE, SIDE)
    x, y = (domains.scales[i].to_native(side) for i in (first, second))
    optimum = float(domains.scales[first].to_native(best[first])), float(domains.scales[second].to_native(best[second]))
    return Panel("two at a time", domains.names[first], domains.names[second], x=x, y=y, values=values, best=[optimum])


def _targets(dynamics: Dynamics, recorded: RecordedOptimum) -> Landscape:
    oracle, codec = CoarseOracle(dynamics, recorded=recorded), dynamics.codec
    best = recorded.action if isinstance(recorded.action, dict) else {}
    levels = _levels(recorded)
    panels = []
    for index, (target, name) in enumerate(zip(codec.sets, codec.choices, strict=True)):
        members = [variable for variable in codec.domains.names if variable in target]
        if not members:
            idle = dynamics.actions_at(index, np.zeros((1, 0)))
            levels["nothing set"] = float(oracle.mean_of(dynamics.decode_batch(idle)).value.ravel()[0])
        elif len(members) <= 2 and len(panels) < MAX_PANELS:
            panels.append(_target(oracle, index, f"do{name}".replace("{", "(").replace("}", ")"), members, best))
    return Landscape(panels, "E[Y | do(x)], one panel per target set of one or two variables.", levels)


def _target(oracle: Oracle, index: int, title: str, members: Sequence[str], best: dict[str, Any]) -> Panel:
    dynamics, domains = oracle.dynamics, oracle.dynamics.domains
    optimum = [tuple(domains.number(name, best[name]) for name in members)] if set(best) == set(members) else []
    side = np.linspace(0.0, 1.0, LINE if len(members) == 1 else SIDE)
    points = np.stack(np.meshgrid(*[side] * len(members)), axis=-1).reshape(-1, len(members))
    values = _expected_values(oracle, dynamics.actions_at(index, points))
    x, *others = (domains.scales[domains.names.index(name)].to_native(side) for name in members)
    if others:
        return Panel(title, *members, x=x, y=others[0], values=values.reshape(SIDE, SIDE), best=optimum)
    marked = [(point[0], oracle.optimum.value) for point in optimum]
    return Panel(title, members[0], curves=[Curve(members[0], x, values)], best=marked)


def _super_arms(dynamics: Dynamics, recorded: RecordedOptimum) -> Landscape:
    """Return, for each base arm, the best value of the best super arm after a change that concerns this base arm.

    A change leaves out a member of the best super arm, or replaces it by another arm.
    """
    best = np.asarray(dynamics.codec.from_record(recorded.action))
    members, others = np.flatnonzero(best == 1).tolist(), np.flatnonzero(best == 0).tolist()
    left_out = [[member] for member in members]
    swapped = [[member, other] for member in members for other in others]
    # The first change, of no arm, is the best super arm itself.
    changes = [[], *left_out, *swapped]
    super_arms = np.tile(best, (len(changes), 1))
    for super_arm, changed in zip(super_arms, changes, strict=True):
        super_arm[changed] = 1 - super_arm[changed]
    tolerance = TOLERANCE * (recorded.value - recorded.random_value)
    values = Oracle(dynamics, recorded=recorded).mean_of(dynamics.decode_batch(super_arms), tolerance).value
    # On common draws differences are known better than values.
    values += recorded.value - values[0]
    bars = []
    for i, name in enumerate(dynamics.codec.arms):
        values_of_arm = [float(value) for value, changed in zip(values, changes, strict=True) if i in changed]
        bars.append((name, max(values_of_arm), bool(best[i])))
    caption = (
        "For each base arm the best E[Y | x] after a change that concerns it: a member of the best super arm (dark) is "
        "left out or replaced by another arm, any other arm takes a member's place."
    )
    return Landscape([Panel("", "E[Y] after the change", "", bars=bars)], caption, _levels(recorded))


def _arms(dynamics: Dynamics, recorded: RecordedOptimum) -> Landscape:
    """Return the expected reward of every arm, or of the best of many."""
    oracle, codec = Oracle(dynamics, recorded=recorded), dynamics.codec
    values = _expected_values(oracle, dynamics.all_actions())
    arms = sorted(np.argsort(-values, kind="stable")[:MAX_ARMS].tolist())
    best = codec.from_record(recorded.action)
    bars = [(codec.to_string(dict(codec.arms[i])), float(values[i]), i == best) for i in arms]
    caption = "E[Y] of every action." if len(arms) == len(values) else f"E[Y] of the best {MAX_ARMS} of all actions."
    return Landscape([Panel("", "E[Y]", "", bars=bars, legend=("optimal", "other"))], caption, _levels(recorded))


def _contexts(dynamics: Dynamics, recorded: RecordedOptimum) -> Landscape:
    """Return E[Y | x, c] over a context and a variable: those for which the best response changes most."""
    assert isinstance(dynamics, ContextualDynamics)
    oracle = ContextualOracle(dynamics, recorded=recorded)
    names = dynamics.contexts.names
    natural = dynamics.natural_contexts(oracle.scm.noise_from_uniform(oracle.uniforms(64)))
    middle = np.median(natural, axis=0)
    ends = np.quantile(natural, [0.02, 0.98], axis=0)
    # Vary one context at a time, the others at their medians.
    rows = np.tile(middle, (len(names), RESPONSES, 1))
    indices = np.arange(len(names))
    rows[indices, :, indices] = (ends[0] + np.linspace(0.0, 1.0, RESPONSES)[:, None] * (ends[1] - ends[0])).T
    response = oracle.best_response(rows.reshape(-1, len(names))).broadcast((len(names) * RESPONSES,))
    variables = list(response.hard)
    answers = np.array([response.hard[name][1] for name in variables]).reshape(len(variables), len(names), RESPONSES)
    spans = [np.subtract(*dynamics.problem.manipulable[name][::-1]) for name in variables]
    changes = np.ptp(answers, axis=2) / np.array(spans)[:, None]
    # Indices of the variable and of the context.
    v, k = np.unravel_index(int(np.argmax(changes)), changes.shape)
    if changes[v, k] < 1e-6:  # the same in every context
        v, k = len(variables) - 1, 0
    contexts = np.tile(middle, (SIDE, 1))
    contexts[:, k] = np.linspace(ends[0, k], ends[1, k], SIDE)
    response = oracle.best_response(contexts).broadcast((SIDE,))
    low, high = dynamics.problem.manipulable[variables[v]]
    side = np.linspace(low, high, SIDE)
    do = {name: np.tile(values, SIDE) for name, (_, values) in response.hard.items()}
    do[variables[v]] = np.repeat(side, SIDE)
    values = oracle.mean_given(Intervention.do(do), np.tile(contexts, (SIDE, 1)), tolerance=math.inf).value
    title = f"do({', '.join(variables)})" if len(variables) < 4 else f"do({variables[v]}, …)"
    path = (contexts[:, k], np.clip(response.hard[variables[v]][1], low, high))
    panel = Panel(
        title, f"context {names[k]}", variables[v], x=path[0], y=side, values=values.reshape(SIDE, SIDE), path=path
    )
    caption = f"E[Y | x, c] by the context {names[k]} and the value of {variables[v]}; the dots are the best response."
    if len(names) > 1:
        caption += " The other contexts are at their medians."
    if len(variables) > 1:
        caption += " The other variables set are at their best in each context."
    return Landscape([panel], caption, _levels(recorded))


# Drawing -----------------------------------------------------------------------------------------------------


def draw(landscape: Landscape) -> Figure:
    """Draw all panels, at most three in a row."""
    count = len(landscape.panels)
    columns = min(count, 3)
    tall = max((len(panel.bars) for panel in landscape.panels), default=0)
    height = max(2.9, 0.19 * tall + 1.0)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(3.7 * columns if count > 1 else 5.2, height * rows), layout="constrained")
    figure.patch.set_alpha(0.0)
    for index, panel in enumerate(landscape.panels):
        axes = figure.add_subplot(rows, columns, index + 1)
        if panel.bars:
            _draw_bars(axes, panel, landscape.levels)
        elif panel.curves:
            _draw_curves(axes, panel, landscape.levels)
        else:
            _draw_map(figure, axes, panel)
        _style(axes, panel)
    return figure


def _style(axes: Axes, panel: Panel) -> None:
    axes.set_facecolor("none")
    axes.set_xlabel(panel.x_label, color=INK, fontsize=9)
    axes.set_ylabel(panel.y_label, color=INK, fontsize=9)
    if panel.title:
        axes.set_title(panel.title, color=INK, fontsize=9.5, weight="bold")
    axes.tick_params(colors=INK, labelsize=8)
    for name, spine in axes.spines.items():
        spine.set_color(FAINT)
        spine.set_visible(name in ("left", "bottom") or bool(panel.values.size))


def _draw_curves(axes: Axes, panel: Panel, levels: dict[str, float]) -> None:
    has_legend = len(panel.curves) > 1
    for curve, colour in zip(panel.curves, CURVES, strict=False):
        axes.plot(curve.x, curve.y, color=colour, linewidth=1.6, label=curve.name if has_legend else None)
    for name, style in (("random action", (0, (4, 3))), ("nothing set", (0, (1, 2)))):
        if name in levels:
            axes.axhline(levels[name], color=FAINT, linewidth=1.1, linestyle=style, label=name)
    if panel.best:
        x, y = zip(*panel.best, strict=True)
        star = {"marker": "*", "markersize": 10, "color": OPTIMUM, "linestyle": "none", "zorder": 5}
        axes.plot(x, y, label="optimum", **star)
    axes.margins(x=0.02)
    _legend(axes)


def _legend(axes: Axes, offset: float = -0.2) -> None:
    """Draw the legend below the axes, where no curve is."""
    entries = axes.get_legend_handles_labels()[1]
    if not entries:
        return
    axes.legend(
        fontsize=7.5, frameon=False, labelcolor=INK, ncols=min(len(entries), 4), loc="upper center",
        bbox_to_anchor=(0.5, offset), handlelength=1.6, columnspacing=1.2,
    )  # fmt: skip


def _draw_map(figure: Figure, axes: Axes, panel: Panel) -> None:
    low = float(np.percentile(panel.values, DARKEST))
    ends = (panel.x[0], panel.x[-1], panel.y[0], panel.y[-1])
    image = axes.imshow(
        panel.values, origin="lower", extent=ends, aspect="auto", cmap="viridis", vmin=low, interpolation="none"
    )
    bar = figure.colorbar(
        image, ax=axes, shrink=0.92, pad=0.02, extend="min" if low > panel.values.min() else "neither"
    )
    bar.ax.tick_params(colors=INK, labelsize=7)
    bar.outline.set_edgecolor(FAINT)
    if panel.path:
        axes.plot(*panel.path, "o", markersize=4, color=OPTIMUM, markeredgecolor="#ffffff", markeredgewidth=0.6)
        axes.set(xlim=ends[:2], ylim=ends[2:])
    for x, y in panel.best:
        axes.plot(x, y, "*", markersize=12, color=OPTIMUM, markeredgecolor="#ffffff", clip_on=False, zorder=5)


def _draw_bars(axes: Axes, panel: Panel, levels: dict[str, float]) -> None:
    names, values, chosen = zip(*panel.bars, strict=True)
    positions = np.arange(len(names))[::-1]
    for is_member, colour, label in zip((True, False), (LEVEL, FAINT), panel.legend, strict=True):
        rows = [i for i, member in enumerate(chosen) if member == is_member]
        axes.plot([values[i] for i in rows], positions[rows], "o", color=colour, markersize=6, label=label)
    axes.hlines(positions, values, levels["optimum"], color=FAINT, linewidth=0.8)
    axes.axvline(levels["optimum"], color=OPTIMUM, linewidth=1.4, label="optimum")
    gap = levels["optimum"] - levels["random action"]
    axes.set_xlim(min(min(values), levels["optimum"] - 0.1 * gap) - 0.02 * gap, levels["optimum"] + 0.03 * gap)
    if levels["random action"] > axes.get_xlim()[0]:
        axes.axvline(levels["random action"], color=FAINT, linewidth=1.1, linestyle=(0, (4, 3)), label="random action")
    axes.set_yticks(positions, names)
    _legend(axes, offset=-0.6 / max(0.19 * len(names), 2.0))
