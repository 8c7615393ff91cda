"""Blind play: an agent knows neither the system's name, nor its transformation, nor the seeds of its noise.

A referee keeps secret words. The instance that is played (see :mod:`cbo_gym.problems.variations.instance`), the noise,
the initial data and the agent's seed follow from these words, the environment and the seed. So all agents that are
played with the same words meet the same instances, which are unpredictable without the words. A run stores the secret
of its own cell, from which no other follows, so that it can be played again.
"""

from __future__ import annotations

import hmac
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import ArgumentError
from cbo_gym.task import Task

# Replaces the environment's id.
NO_ID = "the environment"
# Keeps an agent's random stream apart from the noise of the same seed.
AGENT_STREAM = 2
# Streams of a secret.
NOISE, DATA, AGENT, INSTANCE = range(4)
# Hexadecimal digits of a secret.
DIGITS = 32
# Characters of the words, because short ones can be guessed.
MIN_WORDS_LENGTH = 8


class Seeds(NamedTuple):
    """Seeds of the noise, the initial data and the agent's own randomness."""

    noise: int
    data: int
    agent: int


def seeds_of(seed: int, secret: str) -> Seeds:
    """Return the seeds of a run, which follow from its seed and, in blind play, from its secret."""
    if not secret:
        return Seeds(seed, seed, int(np.random.SeedSequence(seed, spawn_key=(AGENT_STREAM,)).generate_state(1)[0]))
    return Seeds(_draw(secret, NOISE, seed), _draw(secret, DATA, seed), _draw(secret, AGENT, seed) % 2**32)


def _draw(secret: str, stream: int, seed: int = 0) -> int:
    words = np.random.SeedSequence(int(secret, 16), spawn_key=(stream, seed)).generate_state(4)
    return int.from_bytes(words.tobytes(), "little")


def secret_of(words: str, env: Spec, seed: int) -> str:
    """Return the secret of a cell, :data:`DIGITS` hexadecimal digits, from the referee's words.

    Raises:
        ArgumentError: for fewer than :data:`MIN_WORDS_LENGTH` characters.
    """
    if len(words) < MIN_WORDS_LENGTH:
        raise ArgumentError(f"secret words must have at least {MIN_WORDS_LENGTH} characters; given {len(words)}")
    return hmac.new(words.encode(), f"{env}\0{seed}".encode(), "sha256").hexdigest()[:DIGITS]


def with_secret_instance(env: Spec, secret: str) -> Spec:
    """Return the environment with the instance that follows from a secret.

    Raises:
        ArgumentError: if the environment names an instance itself.
    """
    if "instance" in env.keywords:
        raise ArgumentError(f"{env} names its instance; blind play draws one")
    # Instance 0 is the system as published.
    instance = 1 + _draw(secret, INSTANCE) % (2**32 - 1)
    return Spec(env.name, tuple(sorted({**env.keywords, "instance": instance}.items())))


def anonymous(task: Task) -> Task:
    """Return the task without the environment's id, which isolated agents never receive."""
    return replace(task, env_id=NO_ID)
