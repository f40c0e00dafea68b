"""Summaries: TensorBoard's messages for scalars, histograms, images, sound, text, curves and meshes."""

from __future__ import annotations

import io
import json
import warnings
import wave
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _C
from ._arrays import convert_to_hwc, make_np, tile_videos, to_bytes
from ._tensorboard import (
    HistogramProto,
    PrCurvePluginData,
    Summary,
    SummaryMetadata,
    TensorProto,
    TensorShapeProto,
    TextPluginData,
    layout_pb2,
)

_MAX_THRESHOLDS = 127  # the plug-in's data has one byte for their number


def _metadata(plugin: str, content: bytes = b"") -> SummaryMetadata:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content))


def _shape(sizes: Sequence[int]) -> TensorShapeProto:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])


def _tensor_summary(tag: str, tensor: TensorProto, metadata: SummaryMetadata) -> Summary:
    return Summary(value=[Summary.Value(tag=tag, tensor=tensor, metadata=metadata)])


def scalar(name: str, tensor: Any, collections: None = None, new_style: bool = False,
           double_precision: bool = False) -> Summary:  # fmt: skip
    """A number.

    Args:
        collections: must be None.
        new_style: stores a tensor with one element instead of a simple value.
        double_precision: with new_style: in float64 instead of float32.
    """
    if collections is not None:
        raise NotImplementedError("[scalar] collections are TensorFlow's; expected None")
    value = make_np(tensor).squeeze()
    if value.ndim != 0:
        raise AssertionError(f"Tensor should contain one element (0 dimensions). Was given shape: {value.shape}")
    number = float(value)
    if not new_style:
        return Summary(value=[Summary.Value(tag=name, simple_value=number)])
    if double_precision:
        content = TensorProto(double_val=[number], dtype="DT_DOUBLE")
    else:
        content = TensorProto(float_val=[number], dtype="DT_FLOAT")
    return _tensor_summary(name, content, _metadata("scalars"))


def _tensor_fields() -> dict:
    half = lambda values: values.float().numpy(force=True).view(np.int32).ravel().tolist()  # noqa: E731 - half_val has float32's bits
    plain = lambda values: values.flatten().tolist()  # noqa: E731
    parts = lambda values: _C.torch.view_as_real(values).flatten().tolist()  # noqa: E731
    return {
        _C.float16: ("DT_HALF", "half_val", half), _C.bfloat16: ("DT_BFLOAT16", "half_val", half),
        _C.float32: ("DT_FLOAT", "float_val", plain), _C.float64: ("DT_DOUBLE", "double_val", plain),
        _C.int8: ("DT_INT8", "int_val", plain), _C.uint8: ("DT_UINT8", "uint32_val", plain),
        _C.int16: ("DT_INT16", "int_val", plain), _C.int32: ("DT_INT32", "int_val", plain),
        _C.int64: ("DT_INT64", "int64_val", plain), _C.bool: ("DT_BOOL", "bool_val", plain),
        _C.complex64: ("DT_COMPLEX64", "scomplex_val", parts), _C.complex128: ("DT_COMPLEX128", "dcomplex_val", parts),
    }  # fmt: skip


def tensor_proto(tag: str, tensor) -> Summary:
    """A tensor with its dtype and sizes.

    Raises:
        ValueError: 2 GiB or more, or a dtype for which TensorBoard has none.
    """
    if tensor.numel() * tensor.itemsize >= 1 << 31:
        raise ValueError("tensor is bigger than protocol buffer's hard limit of 2GB in size")
    fields = _tensor_fields().get(tensor.dtype)
    if fields is None:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    dtype, field, convert = fields
    content = TensorProto(dtype=dtype, tensor_shape=_shape(tensor.shape), **{field: convert(tensor.detach())})
    return _tensor_summary(tag, content, _metadata("tensor"))


def histogram_raw(name: str, min: float, max: float, num: int, sum: float, sum_squares: float, bucket_limits,
                  bucket_counts) -> Summary:  # fmt: skip
    """A histogram with the upper limits and counts of its buckets."""
    content = HistogramProto(min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits,
                             bucket=bucket_counts)  # fmt: skip
    return Summary(value=[Summary.Value(tag=name, histo=content)])


def histogram(name: str, values: Any, bins, max_bins: int | None = None) -> Summary:
    """A histogram of values.

    Args:
        bins: the limits of the buckets, or their number or the rule that finds it, as in numpy.histogram.
        max_bins: joins neighbouring buckets if there are more than these.
    """
    content = make_histogram(make_np(values).astype(float), bins, max_bins)
    return Summary(value=[Summary.Value(tag=name, histo=content)])


def make_histogram(values: np.ndarray, bins, max_bins: int | None = None) -> HistogramProto:
    """The histogram of an array of float64."""
    if values.size == 0:
        raise ValueError("The input has no element.")
    values = values.reshape(-1)
    counts, limits = np.histogram(values, bins=bins)
    totals = {"min": values.min(), "max": values.max(), "sum": values.sum(), "sum_squares": values.dot(values)}
    return histogram_of_counts(counts, limits, values.size, totals, max_bins)


def histogram_of_counts(counts: np.ndarray, limits: np.ndarray, num: int, totals: dict[str, float],
                        max_bins: int | None = None) -> HistogramProto:  # fmt: skip
    """The histogram of counted buckets: without the empty ones at both ends, and with an empty one before the first.

    TensorBoard stores only upper limits; the empty bucket contains the lower limit of the first one.

    Args:
        counts: n counts.
        limits: their n + 1 limits.
        num: number of values.
        totals: min, max, sum, sum_squares of the values.
    """
    if max_bins is not None and len(counts) > max_bins:
        joined = len(counts) // max_bins
        starts = np.arange(0, len(counts), joined)
        counts, limits = np.add.reduceat(counts, starts), np.append(limits[starts], limits[-1])
    used = np.flatnonzero(counts)
    if used.size == 0:
        raise ValueError("[add_histogram] expected values within the limits of the bins, got none")
    first, last = int(used[0]), int(used[-1]) + 1
    return HistogramProto(num=num, bucket_limit=limits[first : last + 1].tolist(), bucket=[0, *counts[first:last].tolist()],
                          **totals)  # fmt: skip


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Summary:
    """An image, or several in a grid of 8 columns.

    Args:
        tensor: uint8, or other numbers in [0, 1]; values outside are clipped. 1, 3 or 4 channels.
        rescale: factor of its height and width.
        dataformats: the meaning of its dimensions: an order of "NCHW", "CHW" or "HW".
    """
    pixels = to_bytes(convert_to_hwc(make_np(tensor), dataformats))
    return Summary(value=[Summary.Value(tag=tag, image=make_image(pixels, rescale))])


def image_boxes(tag: str, tensor_image: Any, tensor_boxes: Any, rescale: float = 1, dataformats: str = "CHW",
                labels: Sequence[str] | None = None) -> Summary:  # fmt: skip
    """An image with rectangles.

    Args:
        tensor_boxes: (n, 4): left, top, right, bottom in pixels.
        labels: n texts.
    """
    pixels = to_bytes(convert_to_hwc(make_np(tensor_image), dataformats))
    made = make_image(pixels, rescale, make_np(tensor_boxes), labels)
    return Summary(value=[Summary.Value(tag=tag, image=made)])


def draw_boxes(disp_image, boxes: np.ndarray, labels: Sequence[str] | None = None):
    """Draws red rectangles with labels at their bottoms into Pillow's image, and returns it."""
    from PIL import ImageDraw, ImageFont

    draw, font = ImageDraw.Draw(disp_image), ImageFont.load_default()
    for position, (left, top, right, bottom) in enumerate(boxes.tolist()):
        draw.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], width=2, fill="Red")
        if labels is None:
            continue
        text = labels[position]
        box = font.getbbox(text)
        width, height = box[2] - box[0], box[3] - box[1]
        margin = np.ceil(0.05 * height)
        draw.rectangle([(left, bottom - height - 2 * margin), (left + width, bottom)], fill="Red")
        draw.text((left + margin, bottom - height - margin), text, fill="black", font=font)
    return disp_image


def make_image(tensor: np.ndarray, rescale: float = 1, rois: np.ndarray | None = None,
               labels: Sequence[str] | None = None):  # fmt: skip
    """A PNG of pixels (height, width, channels) of uint8."""
    from PIL import Image

    height, width, channels = tensor.shape
    picture = Image.fromarray(tensor[:, :, 0] if channels == 1 else tensor)
    if rois is not None:
        picture = draw_boxes(picture, rois, labels)
    picture = picture.resize((int(width * rescale), int(height * rescale)), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue())


def video(tag: str, tensor: Any, fps: float = 4) -> Summary:
    """Videos of shape (n, time, channels, height, width), side by side, as an animated GIF."""
    return Summary(value=[Summary.Value(tag=tag, image=make_video(to_bytes(tile_videos(make_np(tensor))), fps))])


def make_video(tensor: np.ndarray, fps: float):
    """An animated GIF of frames (time, height, width, channels) of uint8."""
    from PIL import Image

    frames = [Image.fromarray(frame[:, :, 0] if frame.shape[2] == 1 else frame) for frame in tensor]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=1000 / fps, loop=0)
    _, height, width, channels = tensor.shape
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue())


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Summary:
    """One channel of sound with values in [-1, 1]; values outside are clipped with a warning."""
    samples = make_np(tensor).squeeze()
    if samples.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    if abs(samples).max() > 1:
        warnings.warn("[add_audio] expected values in [-1, 1], clipped others", stacklevel=3)
        samples = samples.clip(-1, 1)
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(sample_rate)
        writer.writeframes((samples * np.iinfo(np.int16).max).astype("<i2").tobytes())
    content = Summary.Audio(sample_rate=sample_rate, num_channels=1, length_frames=samples.size,
                            encoded_audio_string=file.getvalue(), content_type="audio/wav")  # fmt: skip
    return Summary(value=[Summary.Value(tag=tag, audio=content)])


def custom_scalars(layout: dict[str, dict[str, Sequence]]) -> Summary:
    """Charts of several scalars: by category and title, "Multiline" and tags, or "Margin" and value, lower, upper."""

    def chart(title: str, kind: str, tags: Sequence[str]):
        if kind != "Margin":
            return layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags))
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        series = layout_pb2.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
        return layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series]))

    categories = [
        layout_pb2.Category(title=category, chart=[chart(title, kind, tags) for title, (kind, tags) in charts.items()])
        for category, charts in layout.items()
    ]
    content = layout_pb2.Layout(category=categories).SerializeToString()
    tensor = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=TensorShapeProto())
    return _tensor_summary("custom_scalars__config__", tensor, _metadata("custom_scalars"))


def text(tag: str, text: str) -> Summary:
    """A text, which TensorBoard shows as Markdown."""
    content = TensorProto(dtype="DT_STRING", string_val=[text.encode()], tensor_shape=_shape([1]))
    return _tensor_summary(tag + "/text_summary", content, _metadata("text", TextPluginData(version=0).SerializeToString()))


def pr_curve_raw(tag: str, tp, fp, tn, fn, precision, recall, num_thresholds: int = 127, weights: None = None) -> Summary:
    """A precision-recall curve of counts: six arrays of `num_thresholds` values, at most 127.

    `weights` makes no difference: the counts contain them.
    """
    values = np.stack([make_np(part) for part in (tp, fp, tn, fn, precision, recall)])
    return _pr_curve(tag, values, num_thresholds)


def pr_curve(tag: str, labels, predictions, num_thresholds: int = 127, weights=None) -> Summary:
    """A precision-recall curve of labels (0 or 1) and predictions in [0, 1], at most 127 thresholds."""
    labels, predictions = make_np(labels), make_np(predictions)
    weights = None if weights is None else make_np(weights)
    thresholds = min(num_thresholds, _MAX_THRESHOLDS)
    return _pr_curve(tag, compute_curve(labels, predictions, thresholds, weights), num_thresholds)


def _pr_curve(tag: str, values: np.ndarray, num_thresholds: int) -> Summary:
    plugin = PrCurvePluginData(version=0, num_thresholds=min(num_thresholds, _MAX_THRESHOLDS)).SerializeToString()
    content = TensorProto(dtype="DT_FLOAT", float_val=values.reshape(-1).tolist(), tensor_shape=_shape(values.shape))
    return _tensor_summary(tag, content, _metadata("pr_curves", plugin))


def compute_curve(labels: np.ndarray, predictions: np.ndarray, num_thresholds: int = _MAX_THRESHOLDS,
                  weights: np.ndarray | None = None) -> np.ndarray:  # fmt: skip
    """Returns (6, num_thresholds): true and false positives, true and false negatives, precision and recall."""
    smallest = 1e-7  # instead of a division by 0
    weights = np.ones(labels.shape) if weights is None else weights
    bucket = np.floor(predictions * (num_thresholds - 1)).astype(np.int32)
    inside = (bucket >= 0) & (bucket < num_thresholds)
    positive = labels.astype(np.float64)

    def at_or_above(share: np.ndarray) -> np.ndarray:
        counts = np.bincount(bucket[inside], (share * weights)[inside], num_thresholds)
        return np.cumsum(counts[::-1])[::-1]

    tp, fp = at_or_above(positive), at_or_above(1 - positive)
    tn, fn = fp[0] - fp, tp[0] - tp
    return np.stack([tp, fp, tn, fn, tp / np.maximum(smallest, tp + fp), tp / np.maximum(smallest, tp + fn)])


def mesh(tag: str, vertices, colors, faces, config_dict: dict | None, display_name: str | None = None,
         description: str | None = None) -> Summary:  # fmt: skip
    """A mesh or a cloud of points: tensors (batch, n, 3).

    Args:
        vertices: coordinates.
        colors: of the vertices, or None.
        faces: the numbers of three vertices each, or None.
        config_dict: settings of three.js, as TensorBoard's mesh plug-in describes them.
    """
    from tensorboard.plugins.mesh import metadata
    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

    kinds = [(vertices, MeshPluginData.VERTEX), (faces, MeshPluginData.FACE), (colors, MeshPluginData.COLOR)]
    given = [(make_np(values), kind) for values, kind in kinds if values is not None]
    components = metadata.get_components_bitmask([kind for _, kind in given])
    config = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    values = []
    for array, kind in given:
        if array.ndim != 3:
            raise ValueError(f"[add_mesh] expected tensors of shape (batch, n, 3), got {array.shape}")
        about = metadata.create_summary_metadata(tag, display_name, kind, components, array.shape, description, json_config=config)
        content = TensorProto(dtype="DT_FLOAT", float_val=array.reshape(-1).tolist(), tensor_shape=_shape(array.shape))
        values.append(Summary.Value(tag=metadata.get_instance_name(tag, kind), tensor=content, metadata=about))
    return Summary(value=values)


def hparams(hparam_dict: dict, metric_dict: dict, hparam_domain_discrete: dict | None = None) -> tuple[Summary, Summary, Summary]:
    """Summaries of an experiment, of the start of a run and of its end; see _hparams.py."""
    from ._hparams import hparams

    return hparams(hparam_dict, metric_dict, hparam_domain_discrete)
