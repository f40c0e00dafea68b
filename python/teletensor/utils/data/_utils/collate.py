"""Provides the names of torch.utils.data._utils.collate."""

import re

from ..loader import default_collate

__all__ = ["default_collate", "np_str_obj_array_pattern"]

np_str_obj_array_pattern = re.compile(r"[SaUO]")
