"""Methods for several objectives, whose rewards are vectors: what they recommend is a Pareto set of actions."""
