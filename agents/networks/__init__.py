"""Methods with a model of every node of a function network."""
