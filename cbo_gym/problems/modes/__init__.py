"""Data of problems for single feedback modes, with their checks: one module per mode."""
