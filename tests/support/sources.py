"""The sources of the package and of scripts."""

import re
from pathlib import Path

import cbo_gym

ROOT = Path(cbo_gym.__file__).parent


def package_sources() -> dict[str, str]:
    """Return module -> source, including folders that are links, as that of the agents is."""
    strings = {}
    for folder, name in ((ROOT, "cbo_gym"), (ROOT / "agents", "cbo_gym.agents")):
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            strings[".".join((name, *(name_part for name_part in parts if name_part != "__init__")))] = path.read_text(
                encoding="utf-8"
            )
    return strings


def script_facts(script: Path) -> tuple[str, str, int]:
    """Return what a script of tests/trials/libraries requires, what it does, and its number of lines of code."""
    content = script.read_text(encoding="utf-8")
    required, task = (re.search(rf"^# {word}: (.*)$", content, flags=re.MULTILINE)[1] for word in ("requires", "task"))
    return required, task, sum(bool(line.strip()) and not line.startswith("#") for line in content.splitlines())
