"""One thread: small tensors are faster so, and results do not depend on the machine's cores."""

import pytest
import torch

torch.set_num_threads(1)


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name bytes by their length: an archive's hold the time of day, and workers must agree."""
    del config
    return f"{argname} of {len(val)} bytes" if isinstance(val, bytes) else None
