"""torch.distributed.launcher: starts ranks from a program. See docs/launch.md."""

from .api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
