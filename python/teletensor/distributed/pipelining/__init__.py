"""torch.distributed.pipelining: models that are divided into stages, which run on different ranks."""

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_liveness": "PipelineActivationLiveness analyze_pipeline_activation_liveness",
    "_split": "Pipe SplitPoint build_stage pipe_split pipeline",
    "schedules": (
        "Schedule1F1B ScheduleDualPipeV ScheduleGPipe ScheduleInterleaved1F1B ScheduleInterleavedZeroBubble "
        "ScheduleLoopedBFS ScheduleZBVZeroBubble"
    ),
    "stage": "PipelineStage",
}

__all__ = [  # noqa: F822 - imported at their first use
    "Pipe", "PipelineActivationLiveness", "PipelineStage", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "SplitPoint", "build_stage",
    "analyze_pipeline_activation_liveness", "pipe_split", "pipeline",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
