"""Calls in other processes, with limits of time and memory.

:mod:`.worker` is the caller's side, :mod:`.serving` that of the process, and :mod:`.channel` the pipes between them.
"""
