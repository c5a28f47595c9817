"""The algorithm: knows torch and the vocabulary, nothing of streams, files or commands."""
