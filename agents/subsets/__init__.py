"""Methods of the subset mode: bandits over the subsets of nodes that are intervened on."""
