"""Methods for several objectives, whose rewards are vectors; they recommend a Pareto set of actions."""
