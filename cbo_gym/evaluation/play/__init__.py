"""Play agents on environments: a single run, or a sweep over a grid of agents, environments and seeds."""
