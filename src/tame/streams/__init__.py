"""Streams: data sets cut into segments that nobody announces."""
