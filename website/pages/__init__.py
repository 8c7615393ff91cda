"""Pages of environments, agents, results and the reference, each a function from data to Markdown."""
