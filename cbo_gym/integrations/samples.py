"""sample: draw observational and interventional data of an environment's system, as a data frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from cbo_gym._util.arguments import MAX_NOISE_SEED, seed_number, whole_number
from cbo_gym.errors import ArgumentError, ArgumentTypeError, did_you_mean, short_repr
from cbo_gym.integrations.opening import open_env
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.scm import Floats, Intervention
from cbo_gym.scm.system import Draws, Values
from cbo_gym.task import Action

# Key of the random stream, so that it is independent of the streams of evaluations with the same seed.
SAMPLES_STREAM = 3
# Number of values of one variable that are computed together, so that they fit in the processor's cache.
BLOCK = 2**14


def sample(
    env: Any,
    n: int,
    *,
    do: Mapping[str, Floats] | None = None,
    action: Action | None = None,
    seed: int = 0,
    **env_parameters: Any,
) -> pl.DataFrame:
    """Draw independent samples of an environment's system.

    Without ``do`` and ``action`` there is no intervention: soft parameters are at the null action, and all signals of a
    masked system are masked.

    Args:
        env: environment id, also with parameters: ``"CBO/BinaryTree-v0(depth=3)"``; or an environment.
        n: number of samples, at least 1.
        do: hard intervention: values of observed variables other than the reward, in native units, also outside their
            domains; each is a finite number, or ``n`` numbers, one per sample (a randomised experiment).
        action: an element of the action space, which is played in every sample; the variables that it sets must not be
            in ``do``. In aggregated mode the samples are then means over the cell.
        seed: seed of the noise, from 0 to 2**128 - 1.
        env_parameters: more keyword arguments of the environment.

    Returns:
        a data frame of Polars with ``n`` rows and a column for each observed variable, in topological order, the reward
        last; ``to_pandas()`` and ``to_numpy()`` convert it.

    Raises:
        ArgumentTypeError: if ``env`` is neither an id nor an environment, or ``do`` is not a mapping.
        ArgumentError: for an unknown environment or bad parameters, ``n`` below 1, an unknown or latent variable or the
            reward in ``do``, or a value that is not a finite number.
        gymnasium.error.InvalidAction: if the action is not an element of the action space.
        OperationError: if a mechanism of a :class:`~cbo_gym.scm.GuardedModel` gives no finite number.
    """
    n = whole_number("n", n, at_least=1)
    seed = seed_number(seed, at_most=MAX_NOISE_SEED)
    dynamics = open_env(env, env_parameters).dynamics
    if not isinstance(do, Mapping | None):
        raise ArgumentTypeError(f"do must be a mapping, {{variable: value}}; given {type(do).__name__}")
    hard = {name: _values(dynamics, name, value, n) for name, value in (do or {}).items()}
    if action is None:
        soft: Sequence[Floats] = dynamics.problem.to_native(dynamics.problem.null_action).tolist()
        simulate: Callable[[Draws, Intervention], Values] = dynamics.scm.propagate
    else:
        intervention = dynamics.decode(action)
        if both := sorted(set(intervention.hard) & set(hard)):
            raise ArgumentError(f"the action sets {both} already; leave them out of do")
        hard |= {name: value for name, (_, value) in intervention.hard.items()}
        soft = intervention.expand().soft if dynamics.averaged_axes else intervention.soft
        simulate = dynamics.play
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(SAMPLES_STREAM,)))
    columns = {name: np.empty(n) for name in dynamics.scm.nodes}
    step = max(1, BLOCK // max(np.size(column) for column in [0.0, *soft]))
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        targets = {
            name: (True, value[rows] if isinstance(value, np.ndarray) else value) for name, value in hard.items()
        }
        values = simulate(dynamics.scm.draw_noise(rng, rows.stop - start), Intervention(soft, targets))
        for name, column in columns.items():
            column[rows] = values[name]
    return pl.DataFrame(columns)


def _values(dynamics: Dynamics, name: str, value: Floats, n: int) -> Floats:
    """Return the values that ``do`` sets a variable to: one number, or an array of ``n`` numbers."""
    *settable, reward = dynamics.scm.nodes
    if name not in settable:
        hint = ", which is the reward" if name == reward else did_you_mean(name, settable)
        raise ArgumentError(f"do cannot set {name!r}{hint}; it can set {settable}")
    try:
        values = np.array(value, dtype=float)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.shape not in ((), (n,)) or not np.isfinite(values).all():
        raise ArgumentError(f"do sets {name} to a finite number, or to {n} of them; given {short_repr(value)}")
    return values if values.ndim else float(values)
