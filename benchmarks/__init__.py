"""Long measurements, kept out of the tests."""
