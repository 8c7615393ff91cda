"""Formulas: traced equations of systems as LaTeX, and LaTeX as MathML."""
