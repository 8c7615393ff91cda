"""Custom problems: from Python functions or YAML files."""
