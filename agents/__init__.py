"""Published methods as agents, one module per method.

Import a method with ``from cbo_gym.agents import MCBO``. The stub ``__init__.pyi`` lists the names; their modules are
loaded on use, so that importing this package is cheap. Packages: ``baselines`` (random play, other optimisers),
``black_box`` (models of the reward alone), ``networks`` (a model of every node), ``intervention_sets``, ``scopes``,
``cells``, ``super_arms``, ``discrete``, ``subsets`` and ``dynamic`` (by the kind of action), ``several_objectives``
(vector rewards), and ``choice`` (which of them plays). ``gp`` has the Gaussian processes, ``common`` shared code:
features of actions, search, argument checks.
"""

if __name__ != "cbo_gym.agents":
    raise ImportError(f"this folder is the package cbo_gym.agents; import it by that name, not as {__name__!r}")

from cbo_gym._util.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
