"""Trials as an ordinary user, where the tests are run by root."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOBODY = 65534
#: the interpreter of the tests may lie in root's home, where others cannot read it
INTERPRETERS = (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")


@cache
def interpreter(user):
    """An interpreter that the user can start, with the packages of this one; None if there is none."""
    for path in INTERPRETERS:
        try:
            words = [path, "-P", "-c", "import cbo_gym, cbo_gym.evaluation"]
            if (
                subprocess.run(words, env=variables("/nowhere"), user=user, capture_output=True, check=False).returncode
                == 0
            ):
                return path
        except OSError:
            continue
    return None


def variables(home, **more):
    path = os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry)])
    return {
        **os.environ,
        "PYTHONPATH": path,
        "HOME": str(home),
        "CBO_GYM_KEY": str(Path(home, "key")),
        "MPLCONFIGDIR": str(home),
        **more,
    }


def run_as(user, words, folder, **more):
    """Run ``python -P WORDS`` in a folder, as this user (None) or another one."""
    if user is not None:
        if os.name != "posix" or os.geteuid() != 0:
            pytest.skip("only root can become another user; the trial as this user is of an ordinary one")
        if interpreter(user) is None:
            pytest.skip("no interpreter of this version can be started by an ordinary user")
        shutil.chown(folder, user)
        for above in folder.parents:  # root's temporary folders are its own
            if above.owner() == "root" and above != Path("/") and not above.stat().st_mode & 0o001:
                above.chmod(above.stat().st_mode | 0o011)
    path = sys.executable if user is None else interpreter(user)
    return subprocess.run(
        [path, "-P", *words],
        cwd=folder,
        env=variables(folder, **more),
        user=user,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=300,
        check=False,
    )


as_any_user = pytest.mark.parametrize("user", [None, NOBODY], ids=["this user", "ordinary user"])
