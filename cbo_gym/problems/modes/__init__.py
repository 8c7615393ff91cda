"""What single feedback modes need of a problem, with the checks of it: one module per mode."""
