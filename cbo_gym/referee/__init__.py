"""Fair play among strangers: isolated processes, submissions, replays and their acceptance."""
