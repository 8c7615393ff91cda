"""A PostgreSQL server for the tests: on the loopback address, in a temporary folder, with a password."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

PASSWORD = "s3cret@/word"  # with characters that a URL has to escape
ESCAPED = "s3cret%40%2Fword"
SETTINGS = ("fsync=off", "full_page_writes=off", "unix_socket_directories=")  # it does not outlive the tests


def binaries():
    """Return the folder of PostgreSQL's programs; None if it is not installed."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return versions[-1].parent if versions else Path(on_path).parent if on_path else None


class Server:
    """A server that runs from ``start`` to ``stop``, as another user if the tests run as root, which it refuses."""

    def __init__(self):
        self._folder = Path(tempfile.mkdtemp(prefix="cbo-gym-postgresql-"))
        self._user = {}
        if os.geteuid() == 0:
            account = next(a for a in (_account("postgres"), _account("nobody")) if a is not None)
            os.chown(self._folder, account.pw_uid, account.pw_gid)
            self._user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        secret = self._folder / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        secret.chmod(0o644)
        self._run("initdb", "-U", "tests", "-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8", "--locale", "C")
        self.port = _free_port()

    def _run(self, program, *arguments):
        command = [binaries() / program, "-D", self._folder / "data", *arguments]
        done = subprocess.run(
            list(map(str, command)), cwd=self._folder, capture_output=True, text=True, check=False, **self._user
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self):
        options = " ".join(
            f"-c {setting}" for setting in (*SETTINGS, f"port={self.port}", "listen_addresses=127.0.0.1")
        )
        self._run("pg_ctl", "-w", "-l", self._folder / "log", "-o", options, "start")

    def stop(self):
        """Stop at once, as if the machine had lost its power."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def remove(self):
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database="postgres", user="tests", password=ESCAPED):
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"


def _account(name):
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
