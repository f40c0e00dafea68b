"""torch.utils.backend_registration: renames the device type of a plug-in."""

from __future__ import annotations

from .._not_implemented import not_implemented

not_implemented(
    globals(), "device types are the engine's: cpu, cuda and meta", "generate_methods_for_privateuse1_backend rename_privateuse1_backend"
)
