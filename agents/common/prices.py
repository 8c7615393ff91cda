"""Costs of actions, computed from their features, for searches that weigh rewards against costs."""

from __future__ import annotations

import torch
from torch import Tensor

from cbo_gym.errors import ArgumentError
from cbo_gym.task import HardTask, SoftTask, Task


def cost_of(task: Task, inputs: Tensor) -> Tensor:
    """Return costs of actions with features ``... x input_dim``, shape ``...``, differentiable.

    Raises:
        ArgumentError: unless the task is soft or hard, and has costs.
    """
    if task.costs is None or not isinstance(task, SoftTask | HardTask):
        raise ArgumentError(f"{task.env_id} is not a soft or hard task with costs")
    domains = task.codec.domains
    native = [scale.to_native(inputs[..., index]) for index, scale in enumerate(domains.scales)]
    if isinstance(task, HardTask):
        masks = [inputs[..., len(native) + index] > 0.5 for index in range(len(native))]
    else:
        masks = [inputs[..., index] != null for index, null in enumerate(task.null_action)]
    changed = {name: (mask, value) for name, mask, value in zip(domains.names, masks, native, strict=True)}
    return torch.as_tensor(task.costs.of(changed), dtype=inputs.dtype).expand(inputs.shape[:-1])
