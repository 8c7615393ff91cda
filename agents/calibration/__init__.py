"""How far to trust a model: calibrated forecasts, and play that keeps constraints with a stated probability."""
