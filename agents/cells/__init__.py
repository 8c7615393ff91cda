"""Methods for aggregated feedback: trees of cells."""
