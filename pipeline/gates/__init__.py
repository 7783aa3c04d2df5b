"""Gates: from figures and earlier evaluations to verdicts."""
