"""Checks and limits of arguments that are common to several agents."""

from __future__ import annotations

import torch

from cbo_gym.errors import ArgumentError, short_repr

# Largest number of samples with which agents estimate an expectation.
MAX_SAMPLES = 4096


def require_device(device: str) -> str:
    """Return ``device``; raise ArgumentError unless it names a torch device, which need not be on this machine."""
    try:
        torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(
            f"device must name a torch device, like 'cpu' or 'cuda:0'; given {short_repr(device)}"
        ) from error
    return device
