"""Methods for contexts: policy scopes as arms."""
