"""Earlier evaluations: references, comparability, and what changed."""
