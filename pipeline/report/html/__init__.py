"""The page: one HTML file with everything that an evaluation says. `render` puts the sections together."""
