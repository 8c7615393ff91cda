"""Seeds of a run: they follow from its own seed and, in blind play, from its secret."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Keeps an agent's random stream apart from the noise of the same seed.
AGENT_STREAM = 2
# Streams of a secret; the instance is drawn by the referee.
NOISE, DATA, AGENT, INSTANCE = range(4)


class Seeds(NamedTuple):
    """Seeds of the noise, the initial data and the agent's own randomness."""

    noise: int
    data: int
    agent: int


def seeds_of(seed: int, secret: str) -> Seeds:
    """Return the seeds of a run; ``secret`` is empty in ordinary play, else hexadecimal digits."""
    if not secret:
        return Seeds(seed, seed, int(np.random.SeedSequence(seed, spawn_key=(AGENT_STREAM,)).generate_state(1)[0]))
    return Seeds(draw(secret, NOISE, seed), draw(secret, DATA, seed), draw(secret, AGENT, seed) % 2**32)


def draw(secret: str, stream: int, seed: int = 0) -> int:
    """Return a random number of 128 bits that follows from a secret."""
    words = np.random.SeedSequence(int(secret, 16), spawn_key=(stream, seed)).generate_state(4)
    return int.from_bytes(words.tobytes(), "little")
