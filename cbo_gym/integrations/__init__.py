"""Integrations with other libraries: data frames of samples, and environments as functions to be optimised."""
