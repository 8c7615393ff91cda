"""Problems of somebody's own: in Python, in YAML files, or worked out from one that was observed."""
