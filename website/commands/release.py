"""Write the date of a release and the address of the repository into the files.

``make release REPOSITORY=https://github.com/OWNER/NAME DATE=2026-12-01`` writes them into the changelog, the citation,
``pyproject.toml`` (``project.urls``), ``mkdocs.yml`` and the pages that say how to clone, and then the notebooks, which
get their links to Colab. A second call changes nothing.
"""

import argparse
import re
from datetime import date
from pathlib import Path

from cbo_gym._util.files import write_text
from website.common.paths import ROOT

ADDRESS = re.compile(r"https://[\w.-]+/[\w./-]+[\w-]")
UNRELEASED = " (unreleased)"


def release_files(root: Path, address: str, day: date) -> dict[Path, str]:
    """Return path -> its content with the date and the address.

    Raises:
        ValueError: if the address is invalid, or a line to replace is missing.
    """
    if not ADDRESS.fullmatch(address):
        raise ValueError(f"the address of the repository must be like https://HOST/OWNER/NAME; given {address!r}")
    urls = {"Repository": address, "Issues": f"{address}/issues", "Changelog": f"{address}/blob/main/CHANGELOG.md"}
    lines = "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    inserted = {
        "pyproject.toml": ("[project.scripts]\n", f"[project.urls]\n{lines}\n[project.scripts]\n"),
        "CITATION.cff": ("license: MIT\n", f"date-released: {day}\nrepository-code: {address}\nlicense: MIT\n"),
        "mkdocs.yml": ("docs_dir: docs\n", f"repo_url: {address}\ndocs_dir: docs\n"),
        "cbo_gym/errors.py": ('PACKAGE_SOURCE = "."', 'PACKAGE_SOURCE = "cbo-gym"'),
        "CHANGELOG.md": (UNRELEASED, f" ({day})"),
        "README.md": (
            "git clone REPOSITORY cbo-gym && cd cbo-gym   # REPOSITORY is the address of this page",
            f"git clone {address} cbo-gym && cd cbo-gym",
        ),
        "docs/install.md": (
            "git clone REPOSITORY cbo-gym   # REPOSITORY is the address of this repository",
            f"git clone {address} cbo-gym",
        ),
    }
    contents = {}
    for name, (line, replacement) in inserted.items():
        path = root / name
        before = path.read_text(encoding="utf-8")
        if replacement in before:
            continue
        if line not in before:
            raise ValueError(f"{path} has no {line.strip()!r}, where the release writes")
        contents[path] = before.replace(line, replacement, 1)
    return contents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("address", help="address of the repository: https://github.com/OWNER/NAME")
    parser.add_argument("day", type=date.fromisoformat, help="date of the release: 2026-12-01")
    arguments = parser.parse_args()
    for path, content in release_files(ROOT, arguments.address, arguments.day).items():
        write_text(path, content)
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
