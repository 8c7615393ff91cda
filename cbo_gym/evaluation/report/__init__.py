"""All that is drawn or typeset: tables, figures, the page."""
