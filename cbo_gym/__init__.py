"""cbo-gym: causal Bayesian optimisation benchmarks as Gymnasium environments, with agents and an evaluator.

Importing the package registers every environment: ``gym.make("CBO/Alpine2-v0")``. Its names, which the stub
``__init__.pyi`` lists, are imported at their first use.
"""

from cbo_gym._util.lazy import attach_stub
from cbo_gym.referee import import_guard

# A third-party agent plays in this process.
if import_guard.is_isolated():
    import_guard.close()
else:
    from cbo_gym.drawing.notebook import register_display
    from cbo_gym.envs.registration import register_copy

    if not register_copy():
        from cbo_gym.envs.registry import register_all

        register_all()
    register_display()

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
