"""Configs in YAML, and plans made of them: datasets, models, tasks, measures and gates."""
