"""What several pages use: paths, tables, links and pictures."""
