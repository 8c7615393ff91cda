"""Tools of all families of agents: features of actions, search, checks of arguments."""
