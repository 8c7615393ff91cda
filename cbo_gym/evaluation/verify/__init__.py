"""Results of somebody else's: what they may name, and whether they come out again."""
