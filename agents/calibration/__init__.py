"""How far to trust data and models: noise, forecasts, and play that keeps constraints with a stated probability."""
