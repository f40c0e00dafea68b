"""torch._dynamo.patch_dynamo_config: the settings of torch._dynamo.config within a `with` statement or a function."""

from __future__ import annotations

import functools

from .._config_module import Patch
from . import config

patch_dynamo_config = functools.partial(Patch, _config=config)
