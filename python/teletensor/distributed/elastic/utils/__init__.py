"""torch.distributed.elastic.utils: macros in arguments, free ports, stores, samplers."""

from ...._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "api": "get_env_variable_or_raise get_socket_with_port macros",
}

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
