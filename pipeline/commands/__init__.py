"""Commands beside `evaluate`, one module each."""
