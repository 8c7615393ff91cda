"""Present results: tables and figures, as files for a paper, as an HTML page, and in notebooks."""
