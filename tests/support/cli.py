"""Run the command line in this process."""

import csv
import json
from io import StringIO

from typer.testing import CliRunner

from cbo_gym.cli import app


def run(*words, code=0, **environment):
    """Run a command on a terminal of 200 columns, and require its exit status."""
    words = map(str, words)
    done = CliRunner(env={"COLUMNS": "200", **environment}).invoke(app, list(words), prog_name="cbo-gym")
    assert done.exit_code == code, done.output
    return done


def invoke(*words, code=0):
    """Return all that a command prints, with single spaces."""
    return " ".join(run(*words, code=code).output.split())


def as_json(*words):
    return json.loads(run(*words, "--json").stdout)


def as_csv(*words):
    return list(csv.DictReader(StringIO(run(*words, "--csv").stdout)))
