"""Helpers of all stages."""
