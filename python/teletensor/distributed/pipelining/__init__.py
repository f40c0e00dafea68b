"""torch.distributed.pipelining: models that are divided into stages, which run on different ranks."""

from ._liveness import PipelineActivationLiveness, analyze_pipeline_activation_liveness
from ._split import Pipe, SplitPoint, build_stage, pipe_split, pipeline
from .schedules import (
    Schedule1F1B, ScheduleDualPipeV, ScheduleGPipe, ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS, ScheduleZBVZeroBubble,
)  # fmt: skip
from .stage import PipelineStage

__all__ = [
    "Pipe", "PipelineActivationLiveness", "PipelineStage", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "SplitPoint", "build_stage",
    "analyze_pipeline_activation_liveness", "pipe_split", "pipeline",
]  # fmt: skip
