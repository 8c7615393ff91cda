"""Models of the effects of interventions: networks of Gaussian processes, and priors from observations."""
