"""From scores to what may be said of them: estimates with their intervals."""
