"""Command lines of cbo-gym that run in this process and are shown with their output."""

import shlex

from cbo_gym.cli import app


def shell(line):
    """Show a command line of ``cbo-gym`` and run it."""
    print(f"$ {line}")
    app(shlex.split(line)[1:], standalone_mode=False)


def last_asked(study):
    """Return the number of the newest trial and the values that it sets."""
    row = study.to_frame().row(-1, named=True)
    done = {name[3:-1]: value for name, value in row.items() if name.startswith("do(") and value is not None}
    return row["number"], done


def pairs(values):
    """Return ``{"ph": 6.8}`` as arguments of the command line: ``ph=6.8``."""
    return " ".join(f"{name}={value:.4g}" for name, value in values.items())
