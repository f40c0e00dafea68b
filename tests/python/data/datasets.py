"""Data sets of the tests of workers, which spawned processes can import."""

from __future__ import annotations

import os
import signal
import time
from typing import Any


class Numbers:
    """Samples 0 ... length - 1; subclasses change the behaviour for one of them."""

    def __init__(self, length: int = 8, at: int = 3, action: str = ""):
        self.length, self.at, self.action = length, at, action

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: int) -> int:
        if i == self.at and self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif i == self.at and self.action == "exit":
            os._exit(5)
        elif i == self.at and self.action == "sleep":
            time.sleep(1.5)
        elif i == self.at and self.action == "hang":
            time.sleep(600)
        elif i == self.at and self.action == "pickle":
            return lambda: None
        elif i == self.at and self.action == "local error":

            class LocalError(Exception):
                pass

            raise LocalError("local")
        return i


class Process:
    """Samples that are the worker's process id."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> int:
        return os.getpid()


class Images:
    """Large arrays with a label, a name and nested values."""

    def __init__(self, length: int = 12, width: int = 40_000):
        self.length, self.width = length, width

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: int) -> dict[str, Any]:
        import numpy as np

        image = np.full((self.width,), i, np.uint8)
        return {"image": image, "label": i, "more": (float(i), [str(i), image[:5].astype(np.int16)]), "wide": image * 1.5}


class Tensors:
    """Tensors that are made by the worker, or that are held."""

    def __init__(self, torch: Any = None):
        self.held = None if torch is None else torch.arange(8) * 10

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> Any:
        import teletensor as torch

        value = torch.full((3,), float(i)) if self.held is None else self.held[i]
        return value, torch.tensor(i).to(torch.bfloat16)


def keep(samples: list) -> list:
    """Leaves samples as they are."""
    return samples


def stack_with_tensors(samples: list) -> Any:
    """A collate function that uses tensors."""
    import teletensor as torch

    return torch.stack([torch.tensor(sample) for sample in samples]) * 2


def as_arrays(samples: list) -> Any:
    """A collate function that returns large arrays, which stay arrays."""
    import numpy as np

    return {"ids": np.array(samples), "large": np.stack([np.full(20_000, s, np.float32) for s in samples])}


class PageFaults:
    """Samples are the page faults of allocating, filling and freeing 8 MiB, as text."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, i: int) -> str:
        import resource

        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        blocks = [b"x" * (256 << 10) for _ in range(32)]
        del blocks
        return str(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
