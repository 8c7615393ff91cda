"""CoBO: contextual Bayesian optimisation that ignores the causal diagram (the baseline of Arsenyan et al., sec. 6).

It is GP-UCB on the one scope of all manipulable variables given all contexts (Krause & Ong 2011), with the model and
the exploration of :class:`~cbo_gym.agents.scopes.cocabo.CoCaBO`.
"""

from __future__ import annotations

from cbo_gym.agents.common.policy_scopes import members
from cbo_gym.agents.scopes.cocabo import BETA, CoCaBO
from cbo_gym.agents.scopes.scope_arm import Backend
from cbo_gym.errors import ArgumentError


class CoBO(CoCaBO):
    """Contextual GP-UCB that sets all variables given all contexts. Plays contextual tasks.

    Args:
        beta: factor of beta(n), whose square root multiplies the standard deviation; finite, at least 0.
        backend: kind of GP, as for CoCaBO.
        device: torch device.

    Raises:
        ArgumentError: if an argument is out of range; by :meth:`reset` if no scope of the task sets all variables.
    """

    def __init__(self, beta: float = BETA, backend: Backend = "plain", device: str = "cpu") -> None:
        super().__init__(beta=beta, backend=backend, device=device)

    def choose_scopes(self) -> list[tuple[int, frozenset[str]]]:
        """Return the scope that sets all manipulable variables, with all contexts."""
        everything = frozenset(self.task.manipulable)
        for index, scope in enumerate(self.task.scopes):
            if members(scope)[0] == everything:
                return [(index, frozenset(self.task.contexts))]
        raise ArgumentError(
            f"{self.task.env_id} has no scope that sets all of {sorted(everything)}; add one, or choose an agent that "
            "takes any scopes: CoCaBO or GP-UCB"
        )
