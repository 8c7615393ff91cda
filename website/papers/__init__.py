"""The pages of papers: their figures and claims, judged and drawn from published runs."""
