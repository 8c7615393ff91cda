"""Agents that play at random and attack the process that plays them, not the score."""

import os
import pickle
import struct
from base64 import b64decode, b64encode
from contextlib import suppress
from pathlib import Path

import psutil

from cbo_gym.agents import Random

MARKER = "CBO_GYM_TRIAL_MARKER"  # an environment variable: the file that code in the referee's process would make


class Runs:
    """Makes the file when it is unpickled; stands for a forged result."""

    def __reduce__(self):
        return Path.touch, (Path(os.environ[MARKER]),)


def pipes_of(process):
    """Paths by which the pipes of a process can be opened once more, in either direction."""
    for path in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(OSError):
            if str(path.readlink()).startswith("pipe:"):
                yield path


class WritesToItsReferee(Random):
    """Writes a pickle to each pipe that a process above reads, in the forms of messages of old and new versions."""

    def reset(self, task, seed):
        super().reset(task, seed)
        payload = pickle.dumps((Runs(), ""))
        framed = [struct.pack(">8sQ", b"cbo-gym\0", len(payload)) + payload]
        framed += [struct.pack(">16sQQ", b"cbo-gym\0", 0, len(payload)) + payload]
        for process in psutil.Process().parents()[:2]:
            with suppress(OSError):
                for pipe in pipes_of(process):
                    with suppress(OSError):
                        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
                        os.write(descriptor, framed[os.environ.get("CBO_GYM_TRIAL_FORM") == "new"])
                        os.close(descriptor)


class OpensItsReferee(Random):
    """Says in an error what it could open of the process that asks it."""

    def reset(self, task, seed):
        super().reset(task, seed)
        opened = []
        for what in ("mem", "environ", "fd"):
            with suppress(OSError):
                path = Path(f"/proc/{os.getppid()}/{what}")
                list(path.iterdir()) if what == "fd" else path.open("rb").close()
                opened.append(what)
        raise RuntimeError(f"opened {opened}")


class AnswersAhead(Random):
    """Sends the answers of many rounds when it is asked for the first."""

    def act(self, observation):
        from cbo_gym._util.processes.channel import HEAD
        from cbo_gym._util.processes.serving import _CurrentCall

        action = super().act(observation)
        content = b'{"value":[0.5,0.5]}'
        for stream in (3, 4, 5, 6, 7, 8):
            for number in range(50):
                with suppress(OSError):
                    os.write(stream, HEAD.pack(_CurrentCall.channel.key, number, len(content)) + content)
        return action


class SavesAPickle(Random):
    """Its state is a pickle, which the process that stores it must not read."""

    def state(self):
        return pickle.dumps((b64encode(super().state()), Runs() if os.environ.get("CBO_GYM_ISOLATED") else None))

    def restore(self, state, task):
        super().restore(b64decode(state), task)
