"""Checks of results of others: which labels they may have, and whether they can be reproduced."""
