"""The claims of papers about two methods, and their verdicts by the published runs."""
