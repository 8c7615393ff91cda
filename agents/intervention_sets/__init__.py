"""Methods for hard interventions: which variables to set, and to what."""
