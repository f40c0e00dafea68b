"""torch.distributed.tensor.experimental: attention over sequences that are divided among ranks, and functions of local tensors."""

from ...._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_attention": "context_parallel",
    "_func_map": "local_map",
    "_register_sharding": "register_sharding",
}

__all__ = [  # noqa: F822 - imported at their first use
    "context_parallel", "implicit_replication", "local_map", "register_sharding",
]  # fmt: skip

_get, __dir__ = lazy_attributes(globals(), None, _NAMES)


def __getattr__(name: str):
    if name == "implicit_replication":
        from .._dispatch import implicit_replication

        return implicit_replication
    return _get(name)
