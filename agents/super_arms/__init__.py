"""Methods for masked feedback: combinations of base arms."""
