"""Seals (HMAC-SHA256) of pickled files, by which cbo-gym recognises the files that this user wrote.

The key is created at the first use and stays in the user's configuration folder.
"""

from __future__ import annotations

import hmac
import os
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path

# Environment variable with another path of the key.
KEY_VARIABLE = "CBO_GYM_KEY"
KEY_BYTES = 32


def key_path() -> Path:
    """Return the path of the key: ``~/.config/cbo-gym/key``, or the value of the environment variable."""
    variable = os.environ.get(KEY_VARIABLE)
    return Path(variable) if variable else Path.home() / ".config" / "cbo-gym" / "key"


@cache
def _key(path: Path) -> bytes | None:
    """Return the key, and create it at the first use; None if it cannot be stored."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _write_new_key(path)
        key = path.read_bytes()
    # The folder is read-only, or there is no home.
    except (OSError, RuntimeError):
        return None
    return key if len(key) == KEY_BYTES else None


def _write_new_key(path: Path) -> None:
    """Write a new key in one step, unless another process has written a key meanwhile."""
    temporary = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(os.urandom(KEY_BYTES))
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def seal(content: bytes) -> str | None:
    """Return the seal of ``content``, 64 hexadecimal digits; None if the key cannot be stored."""
    key = _key(key_path())
    return None if key is None else hmac.new(key, content, "sha256").hexdigest()


def is_ours(content: bytes, stored_seal: str) -> bool:
    """Return whether ``stored_seal`` is the seal of ``content`` with this user's key."""
    expected = seal(content)
    return expected is not None and hmac.compare_digest(expected.encode(), stored_seal.encode("utf-8", "replace"))
