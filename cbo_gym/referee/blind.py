"""Blind play: an agent knows neither the system's name, nor its transformation, nor the seeds of its noise.

A referee keeps secret words. The instance that is played (see :mod:`cbo_gym.problems.variations.instance`), the noise,
the initial data and the agent's seed follow from these words, the environment and the seed. So all agents that are
played with the same words meet the same instances, which are unpredictable without the words. A run stores the secret
of its own cell, which reveals no other cell's secret, so that the run can be played again.
"""

from __future__ import annotations

import hmac

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.play.seeds import INSTANCE, draw

# Hexadecimal digits of a secret.
DIGITS = 32
# Characters of the words, because short ones can be guessed.
MIN_WORDS_LENGTH = 8


def draw_instance(words: str, env: Spec, seed: int) -> tuple[Spec, str]:
    """Return the instance of an environment that is played with a seed, and the secret of that cell.

    Args:
        words: The referee's words.
        env: The environment.
        seed: Seed of the run.

    Raises:
        ArgumentError: for fewer than :data:`MIN_WORDS_LENGTH` characters, or if the environment names an instance.
    """
    if len(words) < MIN_WORDS_LENGTH:
        raise ArgumentError(f"secret words must have at least {MIN_WORDS_LENGTH} characters; given {len(words)}")
    if "instance" in env.keywords:
        raise ArgumentError(f"{env} names its instance; blind play draws one")
    secret = hmac.new(words.encode(), f"{env}\0{seed}".encode(), "sha256").hexdigest()[:DIGITS]
    # Instance 0 is the system as published.
    instance = 1 + draw(secret, INSTANCE) % (2**32 - 1)
    return Spec(env.name, tuple(sorted({**env.keywords, "instance": instance}.items()))), secret
