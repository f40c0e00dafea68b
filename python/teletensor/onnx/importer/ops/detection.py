"""Boxes and regions of images."""

from __future__ import annotations

from typing import Any

import numpy as np

import teletensor as torch

from .. import _values
from .._call import Call, keeps

Tensor = torch.Tensor


def _areas(boxes: np.ndarray) -> np.ndarray:
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def _corners(boxes: np.ndarray, centred: bool) -> np.ndarray:
    """y1, x1, y2, x2 with the lower numbers first."""
    if centred:
        half = boxes[:, 2:][:, ::-1] / 2
        centre = boxes[:, :2][:, ::-1]
        return np.concatenate([centre - half, centre + half], 1)
    return np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], 1)


def _kept(boxes: np.ndarray, scores: np.ndarray, most: int, overlap: float, least: float | None) -> list[int]:
    """The boxes that are kept, best first."""
    order = np.argsort(-scores, kind="stable")
    if least is not None:
        order = order[scores[order] > least]
    areas, found = _areas(boxes), []
    while order.size and len(found) < most:
        best, order = order[0], order[1:]
        found.append(int(best))
        low = np.maximum(boxes[best, :2], boxes[order, :2])
        high = np.minimum(boxes[best, 2:], boxes[order, 2:])
        shared = np.prod(np.clip(high - low, 0, None), axis=1)
        union = areas[best] + areas[order] - shared
        order = order[np.where(union > 0, shared / np.where(union > 0, union, 1), 0) <= overlap]
    return found


@keeps()
def _nms(call: Call, boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least: Any = None) -> Tensor:
    """Non-maximum suppression in the client: how many boxes remain depends on their values, for which it waits."""
    boxes, scores = _values.array(boxes), _values.array(scores)
    limit = int(_values.integer(most)) if most is not None else 0
    bound = _values.numbers(overlap)[0] if overlap is not None else 0.0
    threshold = _values.numbers(least)[0] if least is not None else None
    rows = []
    for batch in range(boxes.shape[0]):
        corners = _corners(boxes[batch], bool(call.get("center_point_box", 0)))
        for kind in range(scores.shape[1]):
            rows += [[batch, kind, box] for box in _kept(corners, scores[batch, kind], limit, bound, threshold)]
    return call.tensor(np.asarray(rows, np.int64).reshape(-1, 3))


def _interpolated(image: Tensor, y: Tensor, x: Tensor) -> list[Tensor]:
    """The four weighted neighbours of each point (y by x) of an image (channels, height, width)."""
    height, width = image.shape[-2:]
    inside = ((y >= -1) & (y <= height)).unsqueeze(-1) & ((x >= -1) & (x <= width)).unsqueeze(-2)
    y, x = torch.clamp(y, min=0), torch.clamp(x, min=0)
    y0, x0 = torch.clamp(y.floor(), max=height - 1), torch.clamp(x.floor(), max=width - 1)
    y, x = torch.where(y0 >= height - 1, y0, y), torch.where(x0 >= width - 1, x0, x)
    y1, x1 = torch.clamp(y0 + 1, max=height - 1), torch.clamp(x0 + 1, max=width - 1)
    parts = []
    for yy, wy in ((y0, 1 - (y - y0)), (y1, y - y0)):
        rows = image.index_select(-2, yy.to(torch.int64))
        for xx, wx in ((x0, 1 - (x - x0)), (x1, x - x0)):
            picked = rows.index_select(-1, xx.to(torch.int64))
            parts.append(picked * (wy.unsqueeze(-1) * wx.unsqueeze(-2) * inside.to(image.dtype)))
    return parts


@keeps(2)
def _roi_align(call: Call, x: Tensor, rois: Tensor, batch: Any) -> Tensor:
    height, width = call.get("output_height", 1), call.get("output_width", 1)
    scale, ratio = call.get("spatial_scale", 1.0), call.get("sampling_ratio", 0)
    half = (
        call.get("coordinate_transformation_mode", "half_pixel" if call.version >= 16 else "output_half_pixel")
        == "half_pixel"
    )
    boxes = _values.array(rois).astype(np.float32) * np.float32(scale) - np.float32(0.5 if half else 0.0)
    images = [int(n) for n in _values.ints(batch)]
    pooled = []
    for box, image in zip(boxes, images):
        w, h = box[2] - box[0], box[3] - box[1]
        if not half:
            w, h = max(w, 1.0), max(h, 1.0)
        count_y = ratio if ratio > 0 else int(np.ceil(h / height))
        count_x = ratio if ratio > 0 else int(np.ceil(w / width))
        _values.bounded(max(height, 1) * max(count_y, 1) + max(width, 1) * max(count_x, 1), "RoiAlign")
        y = box[1] + (np.arange(height)[:, None] + (np.arange(count_y)[None, :] + 0.5) / count_y) * (h / height)
        across = box[0] + (np.arange(width)[:, None] + (np.arange(count_x)[None, :] + 0.5) / count_x) * (w / width)
        points = (torch.from_numpy(v.reshape(-1).astype(np.float64)).to(x.device).to(x.dtype) for v in (y, across))
        parts = _interpolated(x[image], *points)
        windows = [p.reshape([x.shape[1], height, count_y, width, count_x]) for p in parts]
        if call.get("mode", "avg") == "max":
            largest = torch.stack([w.amax([2, 4]) for w in windows])
            pooled.append(largest.amax(0))
        else:
            pooled.append(sum(w.mean([2, 4]) for w in windows))
    return (
        torch.stack(pooled) if pooled else torch.zeros([0, x.shape[1], height, width], dtype=x.dtype, device=x.device)
    )


def _max_roi_pool(call: Call, x: Tensor, rois: Tensor) -> Tensor:
    height, width = call.need("pooled_shape")
    scale = call.get("spatial_scale", 1.0)
    results = []
    for row in _values.array(rois):
        image = int(row[0])
        x1, y1, x2, y2 = (int(np.floor(v * scale + 0.5)) for v in row[1:])
        h, w = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        call.run.allowance.use(height * width)
        cells = []
        for i in range(height):
            for j in range(width):
                top = min(max(int(np.floor(i * h / height)) + y1, 0), int(x.shape[2]))
                bottom = min(max(int(np.ceil((i + 1) * h / height)) + y1, 0), int(x.shape[2]))
                left = min(max(int(np.floor(j * w / width)) + x1, 0), int(x.shape[3]))
                right = min(max(int(np.ceil((j + 1) * w / width)) + x1, 0), int(x.shape[3]))
                empty = bottom <= top or right <= left
                cells.append(
                    torch.zeros_like(x[image, :, 0, 0]) if empty else x[image, :, top:bottom, left:right].amax([1, 2])
                )
        results.append(torch.stack(cells, 1).reshape([x.shape[1], height, width]))
    return torch.stack(results)


TABLE: dict[str, tuple] = {
    "NonMaxSuppression": ((10, _nms),), "RoiAlign": ((10, _roi_align),), "MaxRoiPool": ((1, _max_roi_pool),),
}  # fmt: skip
