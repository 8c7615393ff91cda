"""Cache of pages between builds of the site; a page is made again if its code or a source changes."""

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from website.common.paths import DOCS, ROOT

KEPT = ROOT / ".cache" / "docs"
#: Folders whose code every page may depend on.
CODE = ("cbo_gym", "agents", "website")
#: Sources of the pages of environments and of results, besides the code.
ENVIRONMENTS = (ROOT / "envs_registry.yaml", ROOT / "results")
RESULTS = (ROOT / "results", ROOT / "suites.yaml", DOCS / "methods", DOCS / "notes.yaml")
Contents = Mapping[str, str | bytes]


def keep(name: str, sources: Iterable[str | Path], make: Callable[[], Contents]) -> Contents:
    """Return pages and pictures by their addresses, from the cache unless the code or a source has changed.

    Args:
        name: Name of the file in the cache, which holds the last build.
        sources: Strings, and paths of files and folders, from which the pages are made.
        make: Makes the pages.
    """
    digest = hashlib.sha256(code_digest().encode())
    for source in sources:
        digest.update(source.encode() if isinstance(source, str) else _content(source))
    path, key = KEPT / f"{name}.json", digest.hexdigest()
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if kept.get("key") != key:
        value = make()
        pictures = {uri: b64encode(content).decode() for uri, content in value.items() if isinstance(content, bytes)}
        pages = {uri: content for uri, content in value.items() if isinstance(content, str)}
        kept = {"key": key, "pages": pages, "pictures": pictures}
        KEPT.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(kept), encoding="utf-8")
    return kept["pages"] | {uri: b64decode(content) for uri, content in kept["pictures"].items()}


@cache
def code_digest() -> str:
    """Return the hash of the code and data in the packages."""
    return hashlib.sha256(b"".join(_content(ROOT / folder) for folder in CODE)).hexdigest()


def _content(path: Path) -> bytes:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    kinds = {".py", ".yaml", ".yml", ".json", ".md", ".parquet", ".csv", ".html", ".css", ".js", ".pyi", ".jinja"}
    return b"".join(
        hashlib.sha256(f"{file.name}".encode() + file.read_bytes()).digest()
        for file in files
        if file.suffix in kinds and file.is_file()
    )
