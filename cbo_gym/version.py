"""The version of cbo-gym: the one place that says it. The build and ``cbo_gym.__version__`` read it here."""

__version__ = "0.2.0"
