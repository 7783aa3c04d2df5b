"""Gates: verdicts from values and earlier evaluations."""
