"""Seeds of a run: of its noise, its initial data and its agent.

In ordinary play they follow from the run's own seed. In *blind play* the agent knows neither the name of the system,
nor its instance (a random transform, see :mod:`cbo_gym.problems.variations.instance`), nor the seed of the noise.
Instance and seeds then follow from secret words of a referee, the environment and the run's seed. So all agents that
are played with the same words meet the same instances, which cannot be predicted without the words. A run stores its
own secret, which is derived from the words, so that the run can be played again; it does not reveal other secrets.
"""

from __future__ import annotations

import hmac
from typing import NamedTuple

import numpy as np

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import ArgumentError

# Hexadecimal digits of a secret.
SECRET_DIGITS = 32
# Fewest characters of the words, because short words can be guessed.
MIN_WORDS_LENGTH = 8
# Spawn key that makes an agent's random stream independent of the noise with the same seed.
AGENT_STREAM = 2
# Random streams that are drawn from a secret.
NOISE, DATA, AGENT, INSTANCE = range(4)


class Seeds(NamedTuple):
    """Seeds of the noise, the initial data and the agent's own randomness."""

    noise: int
    data: int
    agent: int


def seeds_of(seed: int, secret: str) -> Seeds:
    """Return the seeds of a run; ``secret`` has hexadecimal digits in blind play, and is empty in ordinary play."""
    if not secret:
        return Seeds(seed, seed, int(np.random.SeedSequence(seed, spawn_key=(AGENT_STREAM,)).generate_state(1)[0]))
    return Seeds(draw(secret, NOISE, seed), draw(secret, DATA, seed), draw(secret, AGENT, seed) % 2**32)


def draw(secret: str, stream: int, seed: int = 0) -> int:
    """Return the random number of 128 bits that follows from a secret, the name of a stream and a seed."""
    numbers = np.random.SeedSequence(int(secret, 16), spawn_key=(stream, seed)).generate_state(4)
    return int.from_bytes(numbers.tobytes(), "little")


def draw_instance(words: str, env: Spec, seed: int) -> tuple[Spec, str]:
    """Return the instance of an environment that is played blind with a seed, and the secret of that run.

    Args:
        words: The referee's secret words.
        env: The environment.
        seed: Seed of the run.
    """
    if len(words) < MIN_WORDS_LENGTH:
        raise ArgumentError(f"secret words must have at least {MIN_WORDS_LENGTH} characters; given {len(words)}")
    if "instance" in env.keywords:
        raise ArgumentError(f"{env} names its instance; blind play draws one")
    secret = hmac.new(words.encode(), f"{env}\0{seed}".encode(), "sha256").hexdigest()[:SECRET_DIGITS]
    # Instance 0 is the system as published.
    instance = 1 + draw(secret, INSTANCE) % (2**32 - 1)
    return env.with_parameters({"instance": instance}), secret
