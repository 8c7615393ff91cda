"""Data that a problem needs for one feedback mode only, such as arms or contexts: one module per such mode."""
