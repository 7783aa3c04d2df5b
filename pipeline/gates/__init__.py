"""Gates: verdicts from figures and earlier evaluations."""
