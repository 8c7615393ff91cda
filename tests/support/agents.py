"""Small agents that the tests run; importable by path, as a user's would be."""

import os
import signal
import sys

import numpy as np

from cbo_gym import Agent, Mode


class Centre(Agent):
    """Plays the centre of the box, the last target set or first scope, the middle half as a cell, the first base arms,
    every other parameter, the arm in the middle, all nodes at the centre, or the point of a grid nearest to it.
    """

    modes = frozenset(Mode)
    takes_mixed_domains = True

    def act(self, observation):
        if self.task.mode in (Mode.HARD, Mode.DYNAMIC):
            values = self.task.codec.domains.round(np.full(len(self.task.manipulable), 0.5))
            return {"target": len(self.task.targets) - 1, "values": values}
        if self.task.mode is Mode.CONTEXTUAL:
            return {"scope": 0, "values": np.full(len(self.task.manipulable), 0.5)}
        if self.task.mode is Mode.AGGREGATED:
            return np.array([[0.25], [0.75]]) * np.ones(self.task.action_space.shape)
        if self.task.mode is Mode.MASKED:
            return (np.arange(len(self.task.action_domains)) < self.task.super_arm_size).astype(np.int8)
        if self.task.mode is Mode.SUBSET:
            return (np.arange(len(self.task.action_domains)) % 2).astype(np.int8)
        if self.task.mode is Mode.DISCRETE:
            return len(self.task.arms) // 2
        if self.task.mode is Mode.PARTIAL:
            nodes = self.task.action_space["node"].n
            return {"node": nodes - 1, "values": np.full(self.task.action_space["values"].shape, 0.5)}
        return self.task.codec.to_action(np.full(self.task.action_space.shape, 0.5))


class Sampler(Agent):
    """Samples actions from its task's action space."""

    modes = frozenset(Mode)

    def act(self, observation):
        return self.task.action_space.sample()


class Odd(Centre):
    """Returns its action in another form, or misbehaves; ``what`` says how."""

    def __init__(self, what="list"):
        self.what = what

    def act(self, observation):
        action = super().act(observation)
        if self.what == "print":
            print("words", flush=True)
            sys.__stdout__.write("more\n")
        return {
            "list": lambda: action.tolist(),
            "tensor": lambda: __import__("torch").tensor(action),
            "text": lambda: "0.5",
            "raise": lambda: {}["nothing"],
            "leave": lambda: sys.exit(3),
            "kill": lambda: os._exit(3),
        }.get(self.what, lambda: action)()


class Names(Centre):
    """Raises an error with the name of its task."""

    def setup(self, seed):
        raise RuntimeError(f"called {self.task.env_id!r}")


class NoModes(Agent):
    def act(self, observation):
        return 0


class SoftOnly(Centre):
    modes = frozenset({Mode.SOFT})


class Nonsense(Centre):
    """Returns NaN in the round ``bad_round``."""

    def __init__(self, bad_round: int = 3) -> None:
        self.bad_round = bad_round

    def act(self, observation):
        action = super().act(observation)
        played = len(self.history) - len(self.task.initial_data)
        return action * np.nan if played + 1 == self.bad_round else action


class Raises(Centre):
    def update(self, action, observation, reward, info):
        if info:
            raise ZeroDivisionError("the agent divided by zero")
        super().update(action, observation, reward, info)


class Recorder(Centre):
    """Keeps everything that it receives, for inspection."""

    instances: list["Recorder"] = []

    def __init__(self) -> None:
        self.received = []
        Recorder.instances.append(self)

    def reset(self, task, seed):
        self.received += [task, seed]
        super().reset(task, seed)

    def act(self, observation):
        self.received.append(observation)
        return super().act(observation)

    def update(self, action, observation, reward, info):
        self.received += [action, observation, reward, info]
        super().update(action, observation, reward, info)


class DuckTyped:
    """An agent that does not inherit from Agent."""

    def reset(self, task, seed):
        self.space = task.action_space
        self.space.seed(seed)

    def act(self, observation):
        self.last = self.space.sample()
        return self.last

    def update(self, action, observation, reward, info):
        pass

    def recommend(self):
        return self.last


class Incomplete:
    def act(self, observation):
        return 0


class KillsItsProcess(Centre):
    def act(self, observation):
        os.kill(os.getpid(), signal.SIGKILL)


class Exits(Centre):
    """Asks Python to end."""

    def __init__(self, status: int) -> None:
        self.status = status

    def act(self, observation):
        sys.exit(self.status)


class Hangs(Centre):
    def act(self, observation):
        while True:
            pass


class Swallows(Centre):
    """Allocates all memory."""

    def act(self, observation):
        arguments = []
        while True:
            arguments.append(np.ones(2**20))


class ClosesItsStreams(Centre):
    """Closes all files of its process, those of the channel among them."""

    def act(self, observation):
        os.closerange(3, 256)
        return super().act(observation)
