"""Earlier evaluations: references, comparability, and changes."""
