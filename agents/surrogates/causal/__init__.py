"""Models of what interventions do: networks of Gaussian processes, and priors from adjustment."""
