"""Commands of the Makefile that write files of the repository: README, notebooks, pictures, the release."""
