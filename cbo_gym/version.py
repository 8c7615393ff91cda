"""The version of cbo-gym, which the build and ``cbo_gym.__version__`` read here."""

__version__ = "0.2.0"
