"""The evaluation pipeline: `cli` and `workflow` wire the stages, and each stage is a package or module here."""
