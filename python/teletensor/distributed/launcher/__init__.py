"""torch.distributed.launcher: starts ranks from a program. See docs/launch.md."""

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "api": "LaunchConfig elastic_launch launch_agent",
}

__all__ = ["LaunchConfig", "api", "elastic_launch", "launch_agent"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
