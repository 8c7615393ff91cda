"""``python -m cbo_gym``: the command line."""

from cbo_gym.cli import app

if __name__ == "__main__":
    app()
