"""Shift detectors: host-side objects that judge one reading at a time."""
