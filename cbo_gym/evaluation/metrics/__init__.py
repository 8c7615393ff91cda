"""Measures of a run, and how numbers of many runs become one."""
