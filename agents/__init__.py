"""The zoo: published methods as agents, one module per method, in rooms by what they play and believe.

``from cbo_gym.agents import MCBO`` is the name to use. The stub ``__init__.pyi`` lists the names; their modules are
loaded on use, so that importing this package stays cheap. The rooms: ``baselines`` (random play, outside optimisers),
``black_box`` (models of the reward alone), ``networks`` (a model of every node), ``intervention_sets``, ``scopes``,
``cells`` and ``super_arms`` (by what an action is), ``several_objectives`` (rewards that are vectors), and ``choice``
(which of them plays). ``surrogates`` holds the models, ``common`` what all share: actions as inputs, search, argument
checks.
"""

if __name__ != "cbo_gym.agents":
    raise ImportError(f"this folder is the package cbo_gym.agents; import it by that name, not as {__name__!r}")

from cbo_gym.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
