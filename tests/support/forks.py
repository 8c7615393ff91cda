"""Worker processes, forked from a process with all libraries, because the imports take most of a start."""

import multiprocessing
import os
import subprocess
import sys
from multiprocessing import spawn
from pathlib import Path
from threading import Lock

from cbo_gym._util.processes.worker import START

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["gymnasium", "networkx", "numpy", "polars", "pydantic", "scipy.optimize", "torch"])
STARTING = Lock()


class ForkedProcess:
    """The part of ``subprocess.Popen`` that a worker needs."""

    def __init__(self, variables, listening):
        (calls, asking), (hearing, answers) = CONTEXT.Pipe(duplex=False), CONTEXT.Pipe(duplex=False)
        path = [entry for entry in sys.path if isinstance(entry, str)]
        start = START.format(path=path, listening=listening)
        arguments = (calls, answers, {**os.environ, **variables}, Path.cwd(), start)
        self._process = CONTEXT.Process(target=_run, args=arguments, daemon=True)
        with STARTING:
            prepare = spawn.get_preparation_data
            # The main module of the tests is not needed there.
            spawn.get_preparation_data = lambda name: {"name": name}
            try:
                self._process.start()
            finally:
                spawn.get_preparation_data = prepare
        self.pid = self._process.pid
        self.stdin, self.stdout = os.fdopen(os.dup(asking.fileno()), "wb"), os.fdopen(os.dup(hearing.fileno()), "rb")
        for end in (calls, asking, hearing, answers):
            end.close()

    def poll(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("worker", timeout)
        return self._process.exitcode


def _run(calls, answers, environment, folder, start):
    os.setpgid(0, 0)
    os.dup2(calls.fileno(), 0)
    os.dup2(answers.fileno(), 1)
    calls.close()
    answers.close()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    exec(start, {"__name__": "__main__"})
