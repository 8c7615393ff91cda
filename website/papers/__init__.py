"""The pages of papers: their figures and claims from ``docs/papers``, judged and drawn from published runs."""
