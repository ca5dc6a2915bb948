"""A disk that fills up, for this process alone.

Comes in: how many bytes a file may have. Goes out: nothing. Must not: outlive the block.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def room_for(limit_bytes: int) -> Iterator[None]:
    """Meanwhile no file grows beyond this. The system takes what fits, and refuses the rest as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
