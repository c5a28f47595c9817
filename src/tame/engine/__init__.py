"""How a step runs: measuring a batch, learning from it, and keeping its randomness to itself."""
