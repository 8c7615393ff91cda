"""Methods for hard interventions: the choice of variables and of their values."""
