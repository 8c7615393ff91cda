"""Blind play: an agent gets neither the name of the system, nor how it is turned, nor the seeds of its noise.

A referee keeps some words, the salt. From them, the environment and the seed follow the instance that is played (see
:mod:`cbo_gym.problems.variations.instance`), the noise, the initial data and the agent's own seed. So all agents that
are played with the same words meet the same, and nobody who does not know the words can tell what that will be. A run
keeps the secret of its own cell, from which no other one follows, so that it can be played again.
"""

from __future__ import annotations

import hmac
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.labels import Spec
from cbo_gym.task import Task

# Stands in place of the environment's id.
NO_ID = "the environment"
AGENT_STREAM = 2  # keeps an agent's random stream apart from the noise of the same seed
NOISE, DATA, AGENT, INSTANCE = range(4)  # streams of a secret
DIGITS = 32  # hexadecimal ones of a secret
LEAST_WORDS = 8  # characters; what can be guessed hides nothing


class Seeds(NamedTuple):
    """The seeds of the noise, the initial data and the agent's own randomness."""

    noise: int
    data: int
    agent: int


def seeds_of(seed: int, secret: str) -> Seeds:
    """Of a run: from its seed alone where there is no secret, else from both."""
    if not secret:
        return Seeds(seed, seed, int(np.random.SeedSequence(seed, spawn_key=(AGENT_STREAM,)).generate_state(1)[0]))
    return Seeds(_drawn(secret, NOISE, seed), _drawn(secret, DATA, seed), _drawn(secret, AGENT, seed) % 2**32)


def _drawn(secret: str, stream: int, seed: int = 0) -> int:
    words = np.random.SeedSequence(int(secret, 16), spawn_key=(stream, seed)).generate_state(4)
    return int.from_bytes(words.tobytes(), "little")


def secret_of(words: str, env: Spec, seed: int) -> str:
    """The secret of a cell, :data:`DIGITS` hexadecimal digits, from the referee's words.

    Raises:
        ArgumentError: for fewer than :data:`LEAST_WORDS` characters.
    """
    if len(words) < LEAST_WORDS:
        raise ArgumentError(f"words that hide something have at least {LEAST_WORDS} characters; given {len(words)}")
    return hmac.new(words.encode(), f"{env}\0{seed}".encode(), "sha256").hexdigest()[:DIGITS]


def turned(env: Spec, secret: str) -> Spec:
    """The environment with the instance that follows from a secret.

    Raises:
        ArgumentError: if the environment names an instance itself.
    """
    if "instance" in env.keywords:
        raise ArgumentError(f"{env} names its instance; blind play draws one")
    instance = 1 + _drawn(secret, INSTANCE) % (2**32 - 1)  # 0 is the system as published
    return Spec(env.name, tuple(sorted({**env.keywords, "instance": instance}.items())))


def anonymous(task: Task) -> Task:
    """Return the task without the environment's id, which no isolated agent gets, in blind play or not."""
    return replace(task, env_id=NO_ID)
