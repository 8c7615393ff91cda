"""Tools that all rooms share and no method owns: actions as inputs, search, argument checks."""
