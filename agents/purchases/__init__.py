"""Agents of partial mode, which buy the nodes of a function network."""
