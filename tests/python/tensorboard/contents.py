"""Contents of a folder of event files, as values that can be compared and stored as JSON."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from pathlib import Path

import numpy as np
from google.protobuf.json_format import MessageToDict
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData


def _pixels(encoded: bytes) -> dict:
    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(encoded)))
    return {"shape": list(pixels.shape), "sha": hashlib.sha256(pixels.tobytes()).hexdigest()[:16]}


def _event(event: Event) -> dict:
    found = MessageToDict(event)
    if event.wall_time != 7.0:
        del found["wallTime"]
    for value in found.get("summary", {}).get("value", ()):
        if "image" in value:
            value["image"]["encodedImageString"] = _pixels(base64.b64decode(value["image"]["encodedImageString"]))
        plugin = value.get("metadata", {}).get("pluginData", {})
        if plugin.get("pluginName") == "hparams":  # contains maps, which have no order
            plugin["content"] = MessageToDict(HParamsPluginData.FromString(base64.b64decode(plugin["content"])))
    return found


def _file(path: Path):
    if path.suffix == ".png":
        return _pixels(path.read_bytes())
    if "tfevents" not in path.name:
        return path.read_text(encoding="utf-8")
    events = [Event.FromString(record) for record in RawEventFileLoader(str(path)).Load()]
    return [_event(event) for event in events if not event.HasField("file_version") and not event.HasField("source_metadata")]


def contents(folder: Path) -> dict:
    """Returns the contents by path; the names of event files are "events"."""
    found: dict = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            where = path.relative_to(folder)
            name = str(where.parent / "events") if "tfevents" in path.name else str(where)
            found[name] = _file(path)
    return json.loads(json.dumps(found))
