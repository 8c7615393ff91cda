"""The generator of the site: MkDocs calls its hooks, and commands of the Makefile write files of the repository."""
