"""Type checks of code that uses the package."""

import re
import subprocess
import sys

import cbo_gym
from cbo_gym import agents


def check_types(folder, python=sys.executable, path=""):
    """Run mypy on a script of a user who has cbo-gym in ``python``'s site-packages, or else under ``path``."""
    names = sorted(set(cbo_gym.__all__) - {"__version__"})
    names_to_check = [*names, *agents.__all__, "same_leaderboard", "same_sweep"]
    reveals = "\n".join(f"reveal_type({name})" for name in names_to_check)
    script = folder / "script.py"
    script.write_text(USER.format(names=", ".join(names), agents=", ".join(agents.__all__), reveals=reveals))
    config = folder / "mypy.ini"  # skip large libraries, which take long and have none of the types
    large = ["torch", "botorch", "numpy", "scipy", "sklearn", "polars", "matplotlib", "networkx", "pydantic", "optuna"]
    skipped = f"[mypy-{','.join(f'{name}.*' for name in large)}]\nfollow_imports = skip\n"
    config.write_text(f"[mypy]\nstrict = true\nfollow_imports = silent\n{skipped}")
    mypy = [sys.executable, "-m", "mypy", "--config-file", config, "--cache-dir", folder / "cache"]
    done = subprocess.run(
        [*mypy, "--python-executable", python, script.name],
        cwd=folder,
        env={"MYPYPATH": str(path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    revealed = [line.split('"')[1] for line in done.stdout.splitlines() if "Revealed type" in line]
    types = dict(zip(["cbo_gym.sweep", *names_to_check], revealed, strict=True))
    assert [name for name, string in types.items() if string == "Any"] == []
    for name, string in types.items():
        expected = RETURNS.get(name.removeprefix("same_").removeprefix("cbo_gym."), name)
        assert re.search(rf"\b{re.escape(expected)}\]?$", string.rpartition("-> ")[2]), f"{name}: {string}"


RETURNS = {
    "evaluate": "Run",
    "sweep": "dict[str, int]",
    "leaderboard": "Leaderboard",
    "custom_problem": "Problem",
    "load_problem": "Problem",
    "make_task": "Task",
    "sample": "Any",  # Polars' types are skipped below
    "optuna_objective": "OptunaObjective",
    "botorch_function": "CausalTestFunction",
}


USER = """
import cbo_gym
from cbo_gym import {names}
from cbo_gym.agents import {agents}
from cbo_gym.evaluation import leaderboard as same_leaderboard, sweep as same_sweep

reveal_type(cbo_gym.sweep)
{reveals}
cbo_gym.evalute  # type: ignore[attr-defined]
from cbo_gym.agents import NoSuchAgent  # type: ignore[attr-defined]
"""
