"""The page: one HTML file with everything about an evaluation."""
