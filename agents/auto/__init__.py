"""The one name to type: a method chosen by what a task tells."""
