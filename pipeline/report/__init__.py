"""An evaluation as people read it."""
