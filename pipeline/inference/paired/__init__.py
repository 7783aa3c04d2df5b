"""Two models on the same queries: how far apart, how sure, and corrected for the number of tests."""
