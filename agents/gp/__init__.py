"""Gaussian processes: kernels and their algebra, stacked fits, posteriors and draws."""

import torch

# The C library gives freed memory back to the system above a threshold, and the next large tensors cause page faults,
# which took up to half the time of fits to some hundred data. glibc raises the threshold to twice the largest block
# that was freed, up to 64 MiB. This block is freed at once and its pages are never used.
torch.empty(2**25 - 2**16, dtype=torch.uint8)
