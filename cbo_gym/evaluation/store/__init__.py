"""The store of published results: many runs in one small file, without what can be computed again."""
