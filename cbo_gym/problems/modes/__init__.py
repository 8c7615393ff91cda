"""What single feedback modes need of a problem, with the checks of it: a module a mode."""
