"""What a model must hold to be released: gates and the evidence they judge by to verdicts."""
