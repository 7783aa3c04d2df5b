"""A finished record to MLflow: `runs` works out what is to be logged, `client` logs it."""
