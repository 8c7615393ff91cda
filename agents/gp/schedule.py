"""Schedule of the fits of a GP's hyper-parameters, which cost much more than adding data to a fitted GP."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class RefitSchedule:
    """Schedule of fits: often at first, later whenever the number of points has grown by a tenth.

    A fit is due if that number has grown by a factor since the last fit: ``early`` at first, then ``growth``.

    Args:
        early_fits: number of first fits to which ``early`` applies.
        growth: factor of later fits.
        early: factor of the first fits; with 1.02, every new point causes a fit up to 50 points.
        large: number of points from which on ``growth`` applies even to the first fits.
        fits: number of fits so far.
        size: number of points at the last fit.
    """

    early_fits: int = 20
    growth: float = 1.1
    early: float = 1.02
    large: int = 200
    fits: int = 0
    size: int = 0

    def due(self, size: int) -> bool:
        """Return whether a fit is due now that there are ``size`` points."""
        is_early = self.fits < self.early_fits and self.size < self.large
        return size > self.size and size >= self.size * (self.early if is_early else self.growth)

    def record(self, size: int) -> None:
        """Record a fit to ``size`` points."""
        self.fits += 1
        self.size = size
