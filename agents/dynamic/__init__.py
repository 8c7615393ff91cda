"""Methods for dynamic feedback: interventions in one time slice after another."""
