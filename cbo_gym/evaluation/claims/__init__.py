"""Claims of papers that one method is better than another, and verdicts on them by the published runs."""
