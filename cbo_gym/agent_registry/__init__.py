"""Names of agents and environments: labels with parameters, entry points, finding classes, and cards."""
