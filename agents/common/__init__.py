"""Modules that agents of all kinds use: features of actions, search, checks of arguments."""
