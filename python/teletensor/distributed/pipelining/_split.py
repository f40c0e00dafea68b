"""pipeline(): divides a model into stages. Only torch.nn.Sequential is divided, because models are not traced."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from ..._lazy import set_module
from ...nn.modules.container import Sequential
from ...nn.modules.module import Module
from .stage import PipelineStage


class SplitPoint(enum.Enum):
    """Where a stage begins: before or after a submodule."""

    BEGINNING = 1
    END = 2


def pipe_split() -> None:
    """Marks the boundary of two stages in forward(). It has no effect when the module runs; pipeline() does not read it."""


@dataclass
class PipeInfo:
    """The description of a divided model that build_stage() uses."""

    num_stages: int
    has_loss_and_backward: bool = False


class Pipe(Module):
    """A model that pipeline() has divided. Calling it runs all stages in this process."""

    def __init__(self, stages: list[Sequential]):
        super().__init__()
        self.num_stages = len(stages)
        for i, stage in enumerate(stages):
            self.add_module(f"submod_{i}", stage)

    def forward(self, *args, **kwargs) -> Any:
        """Runs all stages one after the other."""
        result = self.get_stage_module(0)(*args, **kwargs)
        for i in range(1, self.num_stages):
            result = self.get_stage_module(i)(result)
        return result

    def get_stage_module(self, stage_idx: int) -> Module:
        """Returns the module of a stage."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return self._modules[f"submod_{stage_idx}"]

    def info(self) -> PipeInfo:
        """Returns what build_stage() needs."""
        return PipeInfo(self.num_stages)

    def build_stage(self, stage_index: int, device, group=None) -> PipelineStage:
        """Moves the module of a stage to a device and returns the stage."""
        return build_stage(self.get_stage_module(stage_index), stage_index, self.info(), device, group)


def build_stage(stage_module: Module, stage_index: int, pipe_info: PipeInfo, device, group=None) -> PipelineStage:
    """Moves the module of a stage of a divided model to a device and returns the stage."""
    return PipelineStage(stage_module.to(device), stage_index, pipe_info.num_stages, device, group=group)


def _boundaries(module: Sequential, split_spec: dict[str, SplitPoint]) -> list[int]:
    """The positions of the first submodules of all stages but the first."""
    names = list(module._modules)
    boundaries = set()
    for name, point in split_spec.items():
        if name not in names:
            raise NotImplementedError(
                f"[pipeline] expected the name of a direct submodule of the Sequential in split_spec, got {name!r}: "
                "splitting inside a submodule requires tracing"
            )
        boundaries.add(names.index(name) + (SplitPoint(point) is SplitPoint.END))
    result = sorted(boundaries)
    if any(not 0 < at < len(names) for at in result):
        raise ValueError(f"[pipeline] split_spec {split_spec} leaves a stage without submodules")
    return result


def pipeline(
    module: Module, mb_args: tuple, mb_kwargs: dict[str, Any] | None = None, split_spec=None, split_policy=None
) -> Pipe:
    """Divides a torch.nn.Sequential into stages.

    Args:
        module: the model.
        mb_args: example arguments of one microbatch, as a tuple. Nothing is traced, so they are not used further.
        split_spec: a SplitPoint by the name of a direct submodule.

    Raises:
        NotImplementedError: another type of model, `mb_kwargs` or `split_policy`. They require tracing of forward();
            create a PipelineStage from the modules of each stage instead.
        ValueError: `split_spec` is empty or leaves a stage without submodules.
    """
    if type(module) is not Sequential or mb_kwargs or split_policy is not None:
        raise NotImplementedError(
            "[pipeline] only torch.nn.Sequential with a split_spec and positional arguments can be divided, because models are "
            f"not traced; got {type(module).__name__}. Create a PipelineStage from the modules of each stage"
        )
    if not isinstance(mb_args, tuple):
        raise TypeError(f"[pipeline] expected a tuple in mb_args, got {type(mb_args).__name__}")
    if not split_spec:
        raise ValueError("[pipeline] expected at least one SplitPoint in split_spec")
    begin = [0, *_boundaries(module, split_spec)]
    entries = list(module._modules.items())
    stages = []
    for first, end in zip(begin, [*begin[1:], len(entries)], strict=True):
        stage = Sequential()
        for name, child in entries[first:end]:
            stage.add_module(name, child)
        stages.append(stage)
    return Pipe(stages)


set_module("teletensor.distributed.pipelining._IR", Pipe, SplitPoint)
