"""torch.utils.data.graph_settings: settings of the pipes of a graph that traverse_dps() returns."""

from __future__ import annotations

import warnings
from typing import Any

from ... import _C
from .datapipes._settings import shard, with_shuffle

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings", "get_all_graph_pipes"]


def get_all_graph_pipes(graph: dict[int, tuple]) -> list[Any]:
    """The pipes of a graph, each once."""
    found: dict[int, Any] = {}

    def visit(part: dict[int, tuple]) -> None:
        for number, (pipe, sources) in part.items():
            if number not in found:
                found[number] = pipe
                visit(sources)

    visit(graph)
    return list(found.values())


def _pipes(datapipe: Any) -> list[Any]:
    from .graph import traverse_dps

    return get_all_graph_pipes(traverse_dps(datapipe))


def apply_sharding(datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> Any:
    """Selects a shard of the elements of each pipe that has apply_sharding(). Groups of shards are not supported.

    Raises:
        RuntimeError: one of these pipes reads from another one.
    """
    if getattr(sharding_group, "value", sharding_group) not in (None, 1):
        raise NotImplementedError("[apply_sharding] groups of shards are not supported")
    shard(datapipe, num_of_instances, instance_id)
    return datapipe


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Switches the pipes that shuffle on or off; None leaves them. Returns the pipe, with a shuffler if there was none to switch on."""
    return with_shuffle(datapipe, shuffle)


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """apply_random_seed() with a warning."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases. Please use `apply_random_seed` "
        "instead.", FutureWarning, stacklevel=2,
    )  # fmt: skip
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Gives each pipe with set_seed() a seed that is drawn from the torch.Generator."""
    for pipe in _pipes(datapipe):
        if callable(getattr(pipe, "set_seed", None)):
            pipe.set_seed(int(_C.torch.empty((), dtype=_C.int64).random_(generator=rng).item()))
    return datapipe
