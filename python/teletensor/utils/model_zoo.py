"""torch.utils.model_zoo: the former names of functions of torch.hub. Nothing is downloaded."""

from ..hub import load_state_dict_from_url, tqdm

__all__ = ["load_url", "tqdm"]

load_url = load_state_dict_from_url
