"""Other libraries, used as their users would from the documentation alone: each script of tests/trials/libraries runs.

Each has a virtual environment on top of this one, into which pip installs the script's requirements.
"""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.support.sources import script_facts

SCRIPTS = sorted((Path(__file__).parent / "libraries").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_library_is_used(script, tmp_path):
    required, task, lines = script_facts(script)
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    below = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    Path(site, "below.pth").write_text(below, encoding="utf-8")
    installed = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", *required.split()], capture_output=True, text=True, check=False
    )
    if installed.returncode:
        pytest.skip(f"{required} cannot be installed here: {installed.stderr.strip().splitlines()[-1]}")
    done = subprocess.run(
        [python, "-W", "ignore", str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    print(f"\n{required}: {task}, {lines} lines, worked on Python {sys.version.partition(' ')[0]}")
