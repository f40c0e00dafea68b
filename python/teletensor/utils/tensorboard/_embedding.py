"""Files of TensorBoard's projector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from google.protobuf import text_format

from ._arrays import make_grid, make_np, to_bytes
from ._tensorboard import ProjectorConfig


def write_embedding(config: ProjectorConfig, log_dir: str, subfolder: str, name: str, mat: np.ndarray,
                    metadata: Sequence | None, label_img, metadata_header: Sequence[str] | None) -> None:  # fmt: skip
    """Writes the vectors, labels and pictures of an embedding, and adds it to the projector's configuration."""
    folder = Path(log_dir, subfolder)
    folder.mkdir(parents=True, exist_ok=True)
    info = config.embeddings.add(tensor_name=name, tensor_path=f"{subfolder}/tensors.tsv")
    rows = "".join("\t".join(map(str, row.tolist())) + "\n" for row in mat)
    (folder / "tensors.tsv").write_text(rows, encoding="utf-8")
    if metadata is not None:
        info.metadata_path = f"{subfolder}/metadata.tsv"
        (folder / "metadata.tsv").write_text(_labels(metadata, metadata_header), encoding="utf-8")
    if label_img is not None:
        info.sprite.image_path = f"{subfolder}/sprite.png"
        images = make_np(label_img)
        info.sprite.single_image_dim.extend([images.shape[3], images.shape[2]])
        _write_sprite(images, folder / "sprite.png")
    Path(log_dir, "projector_config.pbtxt").write_text(text_format.MessageToString(config), encoding="utf-8")


def _labels(metadata: Sequence, header: Sequence[str] | None) -> str:
    if header and len(header) != len(metadata[0]):
        raise AssertionError("len of header must be equal to the number of columns in metadata")
    rows = ["\t".join(map(str, row)) for row in [header, *metadata]] if header else map(str, metadata)
    return "\n".join(rows) + "\n"


def _write_sprite(images: np.ndarray, path: Path) -> None:
    from PIL import Image

    grid = make_grid(images, math.ceil(len(images) ** 0.5))
    square = np.zeros((3, grid.shape[2], grid.shape[2]), grid.dtype)  # the projector divides the sprite into a square
    square[:, : grid.shape[1]] = grid
    Image.fromarray(to_bytes(square).transpose(1, 2, 0)).save(path)
