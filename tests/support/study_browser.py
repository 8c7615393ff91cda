"""The page of studies, served by a process of its own."""

import subprocess
import sys

#: options with which a browser runs as root too, and requests nothing by itself
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
ARGUMENTS += ["--disable-component-update", "--disable-sync"]


class Served:
    """The page of a database, served by the command line."""

    def __init__(self, database, *options):
        words = ["-m", "cbo_gym", "study", "serve", str(database), "--port", "0", "--no-browser", *options]
        self._process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
        self.address = self._process.stdout.readline().partition(" is served at ")[2].partition(";")[0]

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self._process.terminate()
        self._process.communicate(timeout=60)
