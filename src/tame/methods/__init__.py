"""Reference methods, one file each."""
