"""The evaluation pipeline. `run.evaluate_opened` calls the stages, each a package or module here, one after another."""
