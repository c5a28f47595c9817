"""What the host does while the device is busy: nothing, or what does not wait for its answer."""

from collections.abc import Callable

Meanwhile = Callable[[], None]


def nothing() -> None:
    """There is nothing to do."""
