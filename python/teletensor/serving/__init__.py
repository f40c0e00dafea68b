"""Served models: functions and modules that a daemon runs for any client of the Open Inference Protocol (docs/serving-python.md).

    teletensor.serving.save(model, "models/net/1", example_inputs=x)        # a folder for `teletensord --models models`
    teletensor.serve(model, name="net", example_inputs=x)                   # from a session, without files
    y = teletensor.models("net")(x)                                         # from a client without the model's code
"""

from __future__ import annotations

from ._client import ServedModel, models
from ._decoder import Decoder
from ._entries import Entry
from ._files import read, save
from ._publish import serve, withdraw

__all__ = ["Decoder", "Entry", "ServedModel", "models", "read", "save", "serve", "withdraw"]
