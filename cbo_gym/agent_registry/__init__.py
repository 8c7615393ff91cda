"""Find agents by name: labels with parameters, entry points of packages, import paths, and agents' cards."""
