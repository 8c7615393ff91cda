"""Calls in other processes, with limits of time and memory."""
