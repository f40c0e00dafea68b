"""Served models: functions and modules that a daemon runs for any client of the Open Inference Protocol (docs/serving-python.md).

    teletensor.serving.save(model, "models/net/1", example_inputs=x)        # a folder for `teletensord --models models`
    teletensor.serve(model, name="net", example_inputs=x)                   # from a session, without files
    y = teletensor.models("net")(x)                                         # from a client without the model's code
"""

from __future__ import annotations

from .._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_client": "ServedModel models",
    "_decoder": "Decoder",
    "_entries": "Entry",
    "_files": "read save",
    "_publish": "serve withdraw",
}
__getattr__, __dir__ = lazy_attributes(globals(), (), _NAMES)

__all__ = ["Decoder", "Entry", "ServedModel", "models", "read", "save", "serve", "withdraw"]
