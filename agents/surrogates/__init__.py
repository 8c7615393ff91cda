"""Models that several agents share."""
