"""HillClimber: small random steps around the best action so far, on any soft task."""

from cbo_gym import Agent, Mode


class HillClimber(Agent):
    """Gaussian steps whose width shrinks from ``first`` to ``last`` over the horizon.

    Args:
        first: width of the first steps, in units of the action box.
        last: width at the end, above 0 and at most ``first``.

    Raises:
        ValueError: if the widths are out of order.
    """

    modes = frozenset({Mode.SOFT})

    def __init__(self, first: float = 0.3, last: float = 0.01) -> None:
        if not 0.0 < last <= first:
            raise ValueError(f"0 < last <= first is needed; given first={first}, last={last}")
        self.first, self.last = first, last

    def act(self, observation):
        if not self.history:
            return self.rng.random(self.task.action_space.shape)
        progress = (len(self.history) - len(self.task.initial_data)) / self.task.horizon
        width = self.first * (self.last / self.first) ** min(progress, 1.0)
        step = width * self.rng.standard_normal(self.task.action_space.shape)
        return (self.recommend() + step).clip(0.0, 1.0)
