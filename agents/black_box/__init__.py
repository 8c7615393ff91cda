"""Methods that model the reward as a function of the action, without a graph."""
