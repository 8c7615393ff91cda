"""Methods for discrete feedback: bandits with finitely many interventions."""
