"""A seal by which a user knows what they kept themselves: the key never leaves their folder."""

from __future__ import annotations

import hmac
import os
from functools import cache
from pathlib import Path

VARIABLE = "CBO_GYM_KEY"  # of the environment: another place for the key
BYTES = 32


def key_path() -> Path:
    """Where the key is: ``~/.cache/cbo-gym/key``, or where the environment says."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else Path.home() / ".cache" / "cbo-gym" / "key"


@cache
def _key(path: Path) -> bytes | None:
    """The key, made at first; None where none can be kept."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(os.urandom(BYTES))
        except FileExistsError:
            pass
        found = path.read_bytes()
    except (OSError, RuntimeError):  # a folder that cannot be written, or no home
        return None
    return found if len(found) == BYTES else None


def seal(content: bytes) -> str | None:
    """The seal of a content; None where there is no key."""
    key = _key(key_path())
    return None if key is None else hmac.new(key, content, "sha256").hexdigest()


def is_ours(content: bytes, sealed: str) -> bool:
    """Whether a seal is that of a content, by this user's key."""
    own = seal(content)
    return own is not None and hmac.compare_digest(own, sealed)
