"""What a run is: its fields and curves, its file, the folder of a sweep, and what it was played with."""
