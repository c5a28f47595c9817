"""Networks made in stages: how wide, how deep, and where the image is halved."""

from collections.abc import Iterator


def check_stages(widths: tuple[int, ...], depths: tuple[int, ...]) -> None:
    """Refuse widths and depths that are no stages."""
    if len(widths) != len(depths) or not widths:
        raise ValueError(f"widths and depths go together, not {widths} and {depths}")
    if min(*widths, *depths) < 1:
        raise ValueError(f"widths and depths are positive, not {widths}, {depths}")


def blocks(widths: tuple[int, ...], depths: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    """Yield channels before, channels after and stride of each block, from `widths[0]` on.

    >>> list(blocks((8, 12), (1, 2)))
    [(8, 8, 1), (8, 12, 2), (12, 12, 1)]
    """
    before = widths[0]
    for stage, (after, depth) in enumerate(zip(widths, depths, strict=True)):
        for number in range(depth):
            yield before, after, 2 if stage and not number else 1
            before = after
