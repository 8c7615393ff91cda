"""Auto, which chooses a method for each task, and its rules."""
