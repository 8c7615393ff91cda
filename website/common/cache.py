"""The cache of generated pages between builds of the site: a page is made again if the code or a source changes."""

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from website.common.paths import DOCS, ROOT

FOLDER = ROOT / ".cache" / "docs"
#: Addresses of pages and pictures in the site, and their contents.
Contents = Mapping[str, str | bytes]
#: Folders whose code every page may depend on.
CODE = ("cbo_gym", "agents", "website")
#: Sources of the pages of environments and of results, besides the code.
ENVIRONMENTS = (ROOT / "envs_registry.yaml", ROOT / "results")
RESULTS = (ROOT / "results", ROOT / "suites.yaml", DOCS / "methods", DOCS / "notes.yaml")


def cached(name: str, sources: Iterable[str | Path], make: Callable[[], Contents]) -> Contents:
    """Return what ``make`` returned in the last build, or call it if the code or a source has changed since.

    Args:
        name: name of the pages' file in the cache.
        sources: strings, and paths of files and folders, from which the pages are made.
        make: function that makes the pages.
    """
    digest = hashlib.sha256(code_digest().encode())
    for source in sources:
        digest.update(source.encode() if isinstance(source, str) else _content(source))
    path, key = FOLDER / f"{name}.json", digest.hexdigest()
    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if stored.get("key") != key:
        contents = make()
        pictures = {uri: b64encode(content).decode() for uri, content in contents.items() if isinstance(content, bytes)}
        pages = {uri: content for uri, content in contents.items() if isinstance(content, str)}
        stored = {"key": key, "pages": pages, "pictures": pictures}
        FOLDER.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(stored), encoding="utf-8")
    return stored["pages"] | {uri: b64decode(content) for uri, content in stored["pictures"].items()}


@cache
def code_digest() -> str:
    """Return the hash of the code and data in the packages."""
    return hashlib.sha256(b"".join(_content(ROOT / folder) for folder in CODE)).hexdigest()


def _content(path: Path) -> bytes:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    endings = {".py", ".yaml", ".yml", ".json", ".md", ".parquet", ".csv", ".html", ".css", ".js", ".pyi", ".jinja"}
    contents = (file.name.encode() + file.read_bytes() for file in files if file.suffix in endings and file.is_file())
    return b"".join(hashlib.sha256(content).digest() for content in contents)
