"""Estimates, confidence intervals and tests from scores."""
