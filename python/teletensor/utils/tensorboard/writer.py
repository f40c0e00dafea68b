"""SummaryWriter and FileWriter: event files for TensorBoard.

A scalar or a histogram of a tensor does not wait for the engine: its event is written, in the order of the calls, when
the value has arrived, and flush() and close() wait for the values that are missing.
"""

from __future__ import annotations

import atexit
import collections
import dataclasses
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from . import summary as summaries
from ._arrays import figure_to_image, make_np
from ._embedding import write_embedding
from ._later import Later, histogram_later, scalar_later
from ._tensorboard import Event, EventFileWriter, ProjectorConfig, SessionLog, Summary, event_pb2

_MAX_LATER = 1024  # events that wait for their values; the next call waits for the oldest


@dataclasses.dataclass
class _Waiting:
    """An event whose summary is complete, or is made by `later`."""

    event: Event
    later: Later | None


class FileWriter:
    """Writes events to one file.

    Args:
        log_dir: the folder of the file, which is created.
        max_queue: number of events that are queued for the thread that writes them.
        flush_secs: seconds between flushes.
        filename_suffix: the end of the file's name.
    """

    def __init__(self, log_dir: str, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""):
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)
        self._waiting: collections.deque[_Waiting] = collections.deque()
        self._lock = threading.RLock()
        _open.add(self)

    def get_logdir(self) -> str:
        """Returns the folder."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Event, step: int | None = None, walltime: float | None = None, *,
                  later: Later | None = None) -> None:  # fmt: skip
        """Writes an event.

        Args:
            walltime: seconds since 1970; by default now.
            later: makes the event's summary when its values have arrived.
        """
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        with self._lock:
            self._waiting.append(_Waiting(event, later))
            self._write(lambda first: first.later is None or first.later.done() or len(self._waiting) > _MAX_LATER)

    def _write(self, may_write: Callable[[_Waiting], bool]) -> None:
        while self._waiting and may_write(self._waiting[0]):
            first = self._waiting.popleft()
            if first.later is not None:
                first.event.summary.CopyFrom(first.later.summary())
            self.event_writer.add_event(first.event)

    def add_summary(self, summary: Summary | Later, global_step: int | None = None, walltime: float | None = None) -> None:
        """Writes a summary."""
        if isinstance(summary, Later):
            return self.add_event(Event(), global_step, walltime, later=summary)
        return self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile, walltime: float | None = None) -> None:
        """Writes a GraphDef and a RunMetadata."""
        graph, stats = graph_profile
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)
        run = event_pb2.TaggedRunMetadata(tag="step1", run_metadata=stats.SerializeToString())
        self.add_event(Event(tagged_run_metadata=run), None, walltime)

    def add_onnx_graph(self, graph, walltime: float | None = None) -> None:
        """Writes a GraphDef."""
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Waits for the values of all events, and until they are written.

        Raises:
            Exception: the error of the computation of a value. The other events are written by the next flush().
        """
        with self._lock:
            self._write(lambda first: True)
            self.event_writer.flush()

    def close(self) -> None:
        """Writes all events and closes the file."""
        try:
            self.flush()
        finally:
            _open.discard(self)
            self.event_writer.close()

    def reopen(self) -> None:
        """Continues with a new file after close()."""
        _open.add(self)
        self.event_writer.reopen()


_open: weakref.WeakSet[FileWriter] = weakref.WeakSet()


@atexit.register
def _flush_all() -> None:
    for writer in list(_open):
        writer.flush()


def _default_bins() -> list[float]:
    """TensorFlow's limits of buckets: 0 and 1e-12 * 1.1**i up to 1e20, with both signs."""
    limits, limit = [], 1e-12
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    return [*(-limit for limit in reversed(limits)), 0, *limits]


class SummaryWriter:
    """Writes what TensorBoard shows. A context manager.

    Numbers, arrays and tensors are accepted. `global_step` is the step of an entry, `walltime` its time in seconds since
    1970, by default now.

    Args:
        log_dir: folder of the files; by default "runs/<date>_<host><comment>".
        comment: the end of the default folder.
        purge_step: entries of this step and later ones of an earlier run are hidden.
        max_queue, flush_secs, filename_suffix: see FileWriter.
    """

    def __init__(self, log_dir: str | None = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
                 flush_secs: int = 120, filename_suffix: str = ""):  # fmt: skip
        if not log_dir:
            import socket

            log_dir = os.path.join("runs", f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}")
        self.log_dir, self.purge_step, self.max_queue = log_dir, purge_step, max_queue
        self.flush_secs, self.filename_suffix = flush_secs, filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self.default_bins = _default_bins()
        self._projector = ProjectorConfig()
        self._get_file_writer()

    def _open(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _get_file_writer(self) -> FileWriter:
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = self._open(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                self.file_writer.add_event(Event(step=self.purge_step, file_version="brain.Event:2"))
                start = SessionLog(status=SessionLog.START)
                self.file_writer.add_event(Event(step=self.purge_step, session_log=start))
                self.purge_step = None
        return self.file_writer

    def _add(self, summary: Summary | Later, step: int | None = None, walltime: float | None = None) -> None:
        self._get_file_writer().add_summary(summary, step, walltime)

    def get_logdir(self) -> str:
        """Returns the folder of the files."""
        return self.log_dir

    def add_hparams(self, hparam_dict: dict, metric_dict: dict, hparam_domain_discrete: dict | None = None,
                    run_name: str | None = None, global_step: int | None = None) -> None:  # fmt: skip
        """Adds a run with hyperparameters and the metrics that it reached, in a subfolder.

        Args:
            hparam_dict: by name: a number, a text, a bool or a tensor with one element.
            metric_dict: by tag: a number.
            hparam_domain_discrete: by name: the values that the parameter can have.
            run_name: the subfolder; by default the time.
        """
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        parts = summaries.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        with SummaryWriter(os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))) as run:
            for part in parts:
                run._add(part, global_step)
            for tag, value in metric_dict.items():
                run.add_scalar(tag, value, global_step)

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
                   new_style: bool = False, double_precision: bool = False) -> None:  # fmt: skip
        """Adds a number. Does not wait for the value of a tensor.

        Args:
            new_style: stores a tensor with one element instead of a simple value.
            double_precision: with new_style: in float64.
        """
        self._add(scalar_later(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None,
                    walltime: float | None = None) -> None:  # fmt: skip
        """Adds several numbers to one chart: each in its own file, in a subfolder. Does not wait for values of tensors."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            path = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            if path not in self.all_writers:
                self.all_writers[path] = self._open(path)
            self.all_writers[path].add_summary(scalar_later(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor, global_step: int | None = None, walltime: float | None = None) -> None:
        """Adds a tensor's values."""
        self._add(summaries.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
                      walltime: float | None = None, max_bins: int | None = None) -> None:  # fmt: skip
        """Adds a histogram. A tensor's values are counted by the engine, without a wait, if `bins` are limits.

        Args:
            bins: "tensorflow" (fixed limits that grow by 10 %), other limits, a number of buckets, or a rule of
                numpy.histogram. For the last two a tensor's values are received.
            max_bins: joins neighbouring buckets if there are more than these.
        """
        if isinstance(bins, str) and bins == "tensorflow":
            bins = self.default_bins
        self._add(histogram_later(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(self, tag: str, min: float, max: float, num: int, sum: float, sum_squares: float,
                          bucket_limits: Sequence[float], bucket_counts: Sequence[float], global_step: int | None = None,
                          walltime: float | None = None) -> None:  # fmt: skip
        """Adds a histogram that was counted already."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        self._add(summaries.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts), global_step, walltime)

    def add_image(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                  dataformats: str = "CHW") -> None:  # fmt: skip
        """Adds an image: uint8, or other numbers in [0, 1]; `dataformats` is the order of its dimensions."""
        self._add(summaries.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                   dataformats: str = "NCHW") -> None:  # fmt: skip
        """Adds images as one grid."""
        self._add(summaries.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(self, tag: str, img_tensor: Any, box_tensor: Any, global_step: int | None = None,
                             walltime: float | None = None, rescale: float = 1, dataformats: str = "CHW",
                             labels: str | list[str] | None = None) -> None:  # fmt: skip
        """Adds an image with rectangles (n, 4): left, top, right, bottom; `labels` are ignored unless there are n."""
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        made = summaries.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(made, global_step, walltime)

    def add_figure(self, tag: str, figure, global_step: int | None = None, close: bool = True,
                   walltime: float | None = None) -> None:  # fmt: skip
        """Adds matplotlib's figure, or a list of them as a grid; `close` closes them."""
        dataformats = "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, figure_to_image(figure, close), global_step, walltime, dataformats)

    def add_video(self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4,
                  walltime: float | None = None) -> None:  # fmt: skip
        """Adds videos of shape (n, time, channels, height, width), side by side, as an animated GIF."""
        self._add(summaries.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100,
                  walltime: float | None = None) -> None:  # fmt: skip
        """Adds sound: samples in [-1, 1]."""
        self._add(summaries.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None) -> None:
        """Adds a text, which TensorBoard shows as Markdown."""
        self._add(summaries.text(tag, text_string), global_step, walltime)

    def add_onnx_graph(self, prototxt: str) -> None:
        """Not supported: add_graph() adds a model's graph."""
        raise NotImplementedError("[add_onnx_graph] graphs of ONNX files are not shown; add_graph(model) shows a model's")

    def add_graph(self, model, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True) -> None:
        """Adds a model's graph, from a symbolic trace.

        Args:
            input_to_model: a tensor or a tuple of arguments, with which the model is run for the shapes of its values.
            verbose: prints the graph.
            use_strict_trace: must be True: containers in a trace are always allowed.
        """
        if not use_strict_trace:
            raise NotImplementedError("[add_graph] use_strict_trace=False is torch.jit.trace's; the model is traced by torch.fx")
        from ._graph import graph

        self._get_file_writer().add_graph(graph(model, input_to_model, verbose))

    @staticmethod
    def _encode(rawstr: str) -> str:
        return "".join(f"%{ord(c):02x}" if c in "%/\\" else c for c in rawstr)

    def add_embedding(self, mat: Any, metadata: Sequence | None = None, label_img: Any = None,
                      global_step: int | None = None, tag: str = "default",
                      metadata_header: Sequence[str] | None = None) -> None:  # fmt: skip
        """Adds vectors to the projector.

        Args:
            mat: (n, width).
            metadata: n labels, or n rows of them with `metadata_header`.
            label_img: n images (n, channels, height, width) with values in [0, 1].
        """
        mat, step = make_np(mat), 0 if global_step is None else global_step
        for given, what in ((metadata, "labels"), (label_img, "images")):
            if given is not None and len(given) != len(mat):
                raise AssertionError(f"#{what} should equal with #data points")
        if mat.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        number = str(step).zfill(5)
        write_embedding(self._projector, self._get_file_writer().get_logdir(), f"{number}/{self._encode(tag)}",
                        f"{tag}:{number}", mat, metadata, label_img, metadata_header)  # fmt: skip

    def add_pr_curve(self, tag: str, labels: Any, predictions: Any, global_step: int | None = None,
                     num_thresholds: int = 127, weights: Any = None, walltime: float | None = None) -> None:  # fmt: skip
        """Adds a precision-recall curve of labels (0 or 1) and predictions in [0, 1], at most 127 thresholds."""
        self._add(summaries.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(self, tag: str, true_positive_counts, false_positive_counts, true_negative_counts,
                         false_negative_counts, precision, recall, global_step: int | None = None,
                         num_thresholds: int = 127, weights: Any = None, walltime: float | None = None) -> None:  # fmt: skip
        """Adds a precision-recall curve that was counted already. `weights` makes no difference."""
        counts = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts)
        self._add(summaries.pr_curve_raw(tag, *counts, precision, recall, num_thresholds, weights), global_step, walltime)

    def add_custom_scalars_multilinechart(self, tags: Sequence[str], category: str = "default", title: str = "untitled") -> None:
        """Adds a chart of several scalars."""
        self._add(summaries.custom_scalars({category: {title: ["Multiline", tags]}}))

    def add_custom_scalars_marginchart(self, tags: Sequence[str], category: str = "default", title: str = "untitled") -> None:
        """Adds a chart of a scalar with its lower and upper limits: three tags."""
        self._add(summaries.custom_scalars({category: {title: ["Margin", tags]}}))

    def add_custom_scalars(self, layout: dict[str, dict[str, Sequence]]) -> None:
        """Adds charts: by category and title, "Multiline" and tags, or "Margin" and three tags."""
        self._add(summaries.custom_scalars(layout))

    def add_mesh(self, tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: dict | None = None,
                 global_step: int | None = None, walltime: float | None = None) -> None:  # fmt: skip
        """Adds meshes or clouds of points: tensors (batch, n, 3)."""
        self._add(summaries.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def flush(self) -> None:
        """Waits for all values, and until they are written."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Writes all entries and closes the files. A later call of an add_ function opens new ones."""
        writers, self.file_writer, self.all_writers = self.all_writers, None, None
        for writer in (writers or {}).values():
            writer.close()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exception) -> None:
        self.close()
