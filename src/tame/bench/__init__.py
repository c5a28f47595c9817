"""Running learners over streams, measuring them, and showing what happened."""
