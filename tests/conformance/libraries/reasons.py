"""Why values of programs differ from PyTorch's, by (library, function)."""

REASONS: dict[tuple[str, str], str] = {
    ("safetensors", "tensors_other"): (
        "bool tensors: safetensors views bytes as bool, which raises RuntimeError, because bytes other than 0 and 1 are not valid bools"
    ),
    ("peft", "files_other"): "peft compares devices with torch.device('mps'), which is no device here",
}
