"""Publishes functions and modules of a session as models that the engine serves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .._C import Tensor
from .._toplevel import published
from ._client import ServedModel, engine
from ._decoder import Decoder
from ._entries import Entry
from ._files import description_of, entries_of, weights_of


def _config(
    max_batch_size: int | None, max_delay: float, instances: int, max_queue: int, to: str | Iterable[str] | None,
    config: Mapping[str, Any] | None,
) -> str:  # fmt: skip
    """config.json with the options, or "" if all of them are the defaults."""
    made: dict[str, Any] = {}
    if max_batch_size is not None:
        if not isinstance(max_batch_size, int) or max_batch_size < 0:
            raise ValueError(f"[serve] expected max_batch_size of at least 0, got {max_batch_size!r}")
        made["max_batch_size"] = max_batch_size
    if max_delay < 0 or max_queue < 0 or instances < 1:
        raise ValueError(
            f"[serve] expected max_delay and max_queue of at least 0 and instances of at least 1, got {max_delay}, {max_queue}, {instances}"
        )
    batching: dict[str, Any] = {}
    if max_delay:
        batching["max_queue_delay_microseconds"] = round(max_delay * 1e6)
    if max_queue:
        batching["default_queue_policy"] = {"max_queue_size": max_queue}
    if batching or (max_batch_size and "sequence_batching" not in (config or {})):
        made["dynamic_batching"] = batching  # requests are joined only with it
    if instances != 1:
        made["instance_group"] = [{"count": instances}]
    names = [to] if isinstance(to, str) else list(to or ())
    if any(not isinstance(name, str) or "," in name for name in names):
        raise ValueError(f"[serve] expected names of principals in `to`, got {names!r}")
    if names:
        made["parameters"] = {"principals": {"string_value": ",".join(names)}}
    made.update(config or {})
    return json.dumps(made) if made else ""


def _fresh(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies, which become read-only."""
    return {name: tensor.detach().contiguous().clone() for name, tensor in weights.items()}


def serve(
    model_or_fn: Callable | Decoder | None,
    name: str,
    example_inputs: Tensor | Sequence[Tensor] | None = None,
    *,
    version: int | None = None,
    max_batch_size: int | None = None,
    max_delay: float = 0.0,
    instances: int = 1,
    max_queue: int = 0,
    to: str | Iterable[str] | None = None,
    dynamic_batch: bool | None = None,
    dynamic_shapes: Mapping[str, Mapping[int, str]] | Sequence[Mapping[int, str]] = (),
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    states: Mapping[str, Tensor] | Sequence[str] = (),
    entries: Mapping[str, Entry] | None = None,
    config: Mapping[str, Any] | None = None,
    timeout: float = 600.0,
) -> ServedModel:
    """Serves a function or module of this session to all clients of the engine, and returns it as they see it.

    The engine traces the function once, without gradients, copies its weights from its own memory to its model repository
    (``teletensord --models DIR``), and loads them: no weight passes this process. Later changes of the weights have no
    effect. The model remains until ``teletensor.serving.withdraw(name)``, also after a restart of the engine.

    Args:
        model_or_fn, example_inputs, dynamic_batch, dynamic_shapes, input_names, output_names, states, entries: as
            of ``teletensor.serving.save``. A model with states is called with ``parameters={"sequence_id": 1, ...}``.
        name: letters, digits and ``._-``. Another principal's model cannot be replaced.
        version: a number that the model does not have yet; None: one more than its largest. The newest one answers requests
            without a version; requests in progress end with the one that they began with.
        max_batch_size: rows of requests that may run together; 0: none. None: 64 if ``dynamic_batch``, else none.
        max_delay: seconds that the first request of a batch waits for others.
        instances: runs at a time.
        max_queue: requests that may wait; more are refused. 0: no limit.
        to: principals that may use the model; None: all that may use the engine's models.
        config: further fields of Triton's model configuration (docs/serving.md), of which the arguments above set some.
        timeout: seconds to wait until the model is ready.

    Raises:
        ValueError: an argument is invalid, the version exists, or the engine cannot load the model.
        PermissionError: the name belongs to another principal.
        NotImplementedError: the engine serves no models.
    """
    if dynamic_batch is None:
        dynamic_batch = not states
    traced = entries_of(
        model_or_fn, entries, dynamic_batch, example_inputs=example_inputs, dynamic_shapes=dynamic_shapes,
        input_names=input_names, output_names=output_names, states=states,
    )  # fmt: skip
    if version is not None and (not isinstance(version, int) or version < 1):
        raise ValueError(f"[serve] expected a positive version, got {version!r}")
    if max_batch_size is None and dynamic_batch and not isinstance(model_or_fn, Decoder) and model_or_fn is not None:
        max_batch_size = 64
    text = _config(max_batch_size, max_delay, instances, max_queue, to, config)
    weights = _fresh(weights_of(traced))
    calls = engine()
    publication = f"serving.{os.getpid()}.{os.urandom(8).hex()}" if weights else ""
    if weights:
        published.publish(publication, weights)
    try:
        number = calls.publish(name, version or 0, description_of(traced, model_or_fn, None), publication, text, timeout)
    except NotImplementedError as error:
        raise NotImplementedError(f"[serve] expected an engine that serves models (teletensord --models DIR): {error}") from None
    finally:
        if weights:
            published.unpublish(publication)
    return ServedModel(name, str(number), timeout=60.0)


def withdraw(name: str, version: int | None = None) -> None:
    """Removes a version of a model that this session's principal has served, or all. Requests in progress are answered.

    Raises:
        ValueError: there is no such model.
        PermissionError: it was published by another principal, or is a folder of the repository.
    """
    engine().withdraw(name, version or 0)
