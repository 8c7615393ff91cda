"""Numerical settings of agents: one thread, which is quickest because their matrices are small, and underflow ignored.

Threads of linear algebra wait for each other after every operation. Since SciPy 1.15 even the steps of L-BFGS-B, of
some microseconds each, are such operations. With two threads on two idle cores a round of GP-UCB took seven times as
long; on a busy machine, some agents took fifty times the processor time.

The correlation of distant points underflows to 0, which is harmless, also if the user lets NumPy raise errors.
Overflow, division by zero and invalid operations stay as the user set them, because they show mistakes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, wraps
from typing import ParamSpec, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@cache
def _linear_algebra(has_scipy: bool) -> ThreadpoolController:
    """Return the settings of NumPy's and SciPy's libraries; SciPy's may be loaded after NumPy's."""
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def numerical_settings() -> Iterator[None]:
    """Let NumPy, SciPy and torch compute with one thread each, and NumPy ignore underflow; afterwards as before."""
    linear_algebra = _linear_algebra("scipy.linalg" in sys.modules)
    is_limited = all(library.num_threads == 1 for library in linear_algebra.lib_controllers)
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else 1
    try:
        with nullcontext() if is_limited else linear_algebra.limit(limits=1), np.errstate(under="ignore"):
            if torch and threads > 1:
                torch.set_num_threads(1)
            yield
    finally:
        if torch and threads > 1:
            torch.set_num_threads(threads)


def with_numerical_settings(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Apply the settings to a function; unlike ``numerical_settings()`` as a decorator, it can be pickled by value."""

    @wraps(function)
    def compute(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        with numerical_settings():
            return function(*arguments, **keywords)

    return compute
