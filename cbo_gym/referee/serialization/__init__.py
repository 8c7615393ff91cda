"""Tasks and rounds as plain data for agents in other processes: JSON, and no code."""

from cbo_gym.referee.serialization.documents import from_plain, to_plain
from cbo_gym.referee.serialization.messages import action_to_plain, read_message, task_of, task_to_plain, write_message

__all__ = ["action_to_plain", "from_plain", "read_message", "task_of", "task_to_plain", "to_plain", "write_message"]
