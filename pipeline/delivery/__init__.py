"""Delivery of finished records."""
