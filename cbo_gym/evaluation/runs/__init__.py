"""Runs: their fields and curves, their files, the folder of a sweep, and the code and machine that they came from."""
