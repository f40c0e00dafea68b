"""Provides the names of torch.utils.data._utils.collate."""

import re

from ..collate import default_collate, default_convert

__all__ = ["default_collate", "default_convert", "np_str_obj_array_pattern"]

np_str_obj_array_pattern = re.compile(r"[SaUO]")
