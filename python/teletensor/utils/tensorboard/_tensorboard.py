"""The parts of the package tensorboard that are used. One module imports them, so that threads do not import them at once."""

from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.plugins.hparams.api_pb2 import DataType, Experiment, HParamInfo, MetricInfo, MetricName, Status
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.summary.writer.record_writer import RecordWriter

__all__ = [
    "AttrValue",
    "DataType",
    "DeviceStepStats",
    "Event",
    "EventFileWriter",
    "Experiment",
    "GraphDef",
    "HParamInfo",
    "HParamsPluginData",
    "HistogramProto",
    "MetricInfo",
    "MetricName",
    "NodeDef",
    "PrCurvePluginData",
    "ProjectorConfig",
    "RecordWriter",
    "RunMetadata",
    "SessionEndInfo",
    "SessionLog",
    "SessionStartInfo",
    "Status",
    "StepStats",
    "Summary",
    "SummaryMetadata",
    "TensorProto",
    "TensorShapeProto",
    "TextPluginData",
    "VersionDef",
    "event_pb2",
    "hparams_metadata",
    "layout_pb2",
]
