"""transformers: small models of more families, with given weights: their loss, outputs and gradients."""

import torch
import transformers

from .tools import backward, fill, integers, randn

WORDS = 61
SMALL = {
    "vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 40, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
TEXT = {"text_config": SMALL, "projection_dim": 16}
IMAGE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "image_size": 32, "patch_size": 8}
SPEECH = {
    "vocab_size": WORDS, "num_mel_bins": 8, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_source_positions": 20,
    "max_target_positions": 20, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip


def _words():
    mask = torch.ones(2, 9, dtype=torch.int64)
    mask[1, 6:] = 0
    words = 3 + integers(WORDS - 3, 2, 9)
    return {"input_ids": words, "attention_mask": mask, "labels": words}


def _images():
    return {"pixel_values": randn(2, 3, 32, 32), "labels": torch.tensor([0, 2])}


def _pairs():
    words = _words()
    words.pop("labels")
    return {**words, "pixel_values": randn(2, 3, 32, 32), "return_loss": True}


# Family: the configuration's options, the model's class and its inputs.
FAMILIES = {
    "albert": ({**SMALL, "embedding_size": 16}, "AlbertForMaskedLM", _words),
    "bart": (
        {**{k: v for k, v in SPEECH.items() if "mel" not in k and "max_" not in k}, "max_position_embeddings": 40},
        "BartForConditionalGeneration", _words,
    ),
    "bloom": ({"vocab_size": WORDS, "hidden_size": 32, "n_layer": 2, "n_head": 4}, "BloomForCausalLM", _words),
    "deberta_v2": (
        {**SMALL, "relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]}, "DebertaV2ForMaskedLM", _words,
    ),
    "distilbert": ({"vocab_size": WORDS, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}, "DistilBertForMaskedLM", _words),
    "electra": ({**SMALL, "embedding_size": 16}, "ElectraForMaskedLM", _words),
    "gemma": ({**SMALL, "num_key_value_heads": 1, "head_dim": 8}, "GemmaForCausalLM", _words),
    "gpt_neox": (SMALL, "GPTNeoXForCausalLM", _words),
    "mamba": ({"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}, "MambaForCausalLM", _words),
    "mistral": ({**SMALL, "num_key_value_heads": 2, "sliding_window": 4}, "MistralForCausalLM", _words),
    "mixtral": ({**SMALL, "num_key_value_heads": 2, "num_local_experts": 4}, "MixtralForCausalLM", _words),
    "opt": ({**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32}, "OPTForCausalLM", _words),
    "phi": (SMALL, "PhiForCausalLM", _words),
    "qwen3": ({**SMALL, "num_key_value_heads": 2, "head_dim": 8}, "Qwen3ForCausalLM", _words),
    "roberta": (SMALL, "RobertaForMaskedLM", _words),
    "convnext": ({"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "num_labels": 3}, "ConvNextForImageClassification", _images),
    "resnet": (
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic", "num_labels": 3},
        "ResNetForImageClassification", _images,
    ),
    "swin": (
        {"image_size": 32, "patch_size": 4, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 2], "window_size": 4, "num_labels": 3},
        "SwinForImageClassification", _images,
    ),
    "vit": ({**IMAGE, "num_labels": 3}, "ViTForImageClassification", _images),
    "clip": ({**TEXT, "vision_config": IMAGE}, "CLIPModel", _pairs),
    "whisper": (SPEECH, "WhisperForConditionalGeneration", lambda: {"input_features": randn(2, 8, 40), "labels": _words()["labels"]}),
    "wav2vec2": (
        {
            **SMALL, "conv_dim": (8, 8), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "apply_spec_augment": False,
        },
        "Wav2Vec2ForCTC", lambda: {"input_values": randn(2, 300), "labels": 3 + integers(WORDS - 3, 2, 5)},
    ),
}  # fmt: skip


def _family(name):
    options, kind, inputs = FAMILIES[name]
    model = getattr(transformers, kind)
    model = fill(model(model.config_class(**options))).eval()
    output = model(**inputs())
    outputs = [v.detach() for v in output.values() if hasattr(v, "detach") and v.is_floating_point()]
    return [outputs, *backward(model, output.loss)]


def _add(name):
    def run():
        return _family(name)

    globals()[f"{name}_backward"] = run


for _name in FAMILIES:
    _add(_name)
