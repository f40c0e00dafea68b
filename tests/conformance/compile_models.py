"""Models of transformers, timm and torchvision in torch.compile: how many are captured as one graph, with both packages.

Small configurations with random weights; each model's forward pass is called once compiled and once as plain Python, and the
results are compared. The environments are those of tests/conformance/libraries (`.venv-libraries`, `.venv-peers`).

    PYTHON -m tests.conformance.compile_models --one OURS.json [NAME ...]        # in an environment where torch is teletensor
    PYTHON -m tests.conformance.compile_models --one THEIRS.json [NAME ...]      # in an environment with PyTorch
    PYTHON -m tests.conformance.compile_models OURS.json THEIRS.json             # prints the table
"""

from __future__ import annotations

import json
import pathlib
import signal
import sys
import time
import warnings
from typing import Any

WORDS = 61
SMALL = {
    "vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 40, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "num_key_value_heads": 2, "head_dim": 8,
}  # fmt: skip
IMAGE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "image_size": 32, "patch_size": 8}
TEXT_OF_IMAGES = {"text_config": SMALL, "vision_config": IMAGE, "projection_dim": 16}
SPEECH = {
    "vocab_size": WORDS, "num_mel_bins": 8, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_source_positions": 20, "max_target_positions": 20,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
SEQUENCES = {k: v for k, v in SPEECH.items() if not any(part in k for part in ("mel", "source", "target"))}
SEQUENCES["max_position_embeddings"] = 40
GPT2 = {"vocab_size": WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 40, "bos_token_id": 1, "eos_token_id": 2}
T5 = {
    "vocab_size": WORDS, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "pad_token_id": 0, "eos_token_id": 1,
    "decoder_start_token_id": 0,
}  # fmt: skip
EXPERTS = {
    **SMALL, "num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 24,
}  # fmt: skip

# Family of transformers: the model's class, the options of its configuration, and the kind of its inputs.
TRANSFORMERS: dict[str, tuple[str, dict, str]] = {
    "albert": ("AlbertForMaskedLM", {**SMALL, "embedding_size": 16}, "words"),
    "bart": ("BartForConditionalGeneration", SEQUENCES, "two texts"),
    "bert": ("BertForMaskedLM", SMALL, "words"),
    "bert_classifier": ("BertForSequenceClassification", SMALL, "words"),
    "big_bird": ("BigBirdForMaskedLM", {**SMALL, "attention_type": "original_full"}, "words"),
    "bloom": ("BloomForCausalLM", {"vocab_size": WORDS, "hidden_size": 32, "n_layer": 2, "n_head": 4}, "words"),
    "camembert": ("CamembertForMaskedLM", SMALL, "words"),
    "codegen": ("CodeGenForCausalLM", {**GPT2, "rotary_dim": 4}, "words"),
    "cohere": ("CohereForCausalLM", SMALL, "words"),
    "convbert": ("ConvBertForMaskedLM", {**SMALL, "embedding_size": 16}, "words"),
    "deberta": ("DebertaForMaskedLM", SMALL, "words"),
    "deberta_v2": (
        "DebertaV2ForMaskedLM", {**SMALL, "relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]}, "words",
    ),
    "distilbert": ("DistilBertForMaskedLM", {"vocab_size": WORDS, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}, "words"),
    "electra": ("ElectraForMaskedLM", {**SMALL, "embedding_size": 16}, "words"),
    "ernie": ("ErnieForMaskedLM", SMALL, "words"),
    "falcon": ("FalconForCausalLM", {k: v for k, v in SMALL.items() if k != "head_dim"}, "words"),
    "fnet": ("FNetForMaskedLM", SMALL, "plain words"),
    "funnel": ("FunnelForMaskedLM", {"vocab_size": WORDS, "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48, "block_sizes": [1, 1]},
               "words"),
    "gemma": ("GemmaForCausalLM", SMALL, "words"),
    "gemma2": ("Gemma2ForCausalLM", {**SMALL, "sliding_window": 4}, "words"),
    "gpt2": ("GPT2LMHeadModel", GPT2, "words"),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", GPT2, "words"),
    "gpt_neo": (
        "GPTNeoForCausalLM", {**SMALL, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 4},
        "words",
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", SMALL, "words"),
    "gptj": ("GPTJForCausalLM", {**GPT2, "rotary_dim": 4}, "words"),
    "granite": ("GraniteForCausalLM", SMALL, "words"),
    "layoutlm": ("LayoutLMForMaskedLM", SMALL, "words"),
    "led": ("LEDForConditionalGeneration", {
        "vocab_size": WORDS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "attention_window": 4,
        "max_encoder_position_embeddings": 40, "max_decoder_position_embeddings": 40}, "two texts"),
    "llama": ("LlamaForCausalLM", SMALL, "words"),
    "longformer": ("LongformerForMaskedLM", {**SMALL, "attention_window": 4}, "words"),
    "m2m_100": ("M2M100ForConditionalGeneration", SEQUENCES, "two texts"),
    "mamba": ("MambaForCausalLM", {"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}, "words"),
    "marian": ("MarianMTModel", SEQUENCES, "two texts"),
    "mbart": ("MBartForConditionalGeneration", SEQUENCES, "two texts"),
    "mistral": ("MistralForCausalLM", {**SMALL, "sliding_window": 4}, "words"),
    "mixtral": ("MixtralForCausalLM", EXPERTS, "words"),
    "mobilebert": ("MobileBertForMaskedLM", {
        **SMALL, "embedding_size": 16, "true_hidden_size": 16, "intra_bottleneck_size": 16}, "words"),
    "mpnet": ("MPNetForMaskedLM", SMALL, "words"),
    "mpt": ("MptForCausalLM", {"vocab_size": WORDS, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 40}, "words"),
    "olmo": ("OlmoForCausalLM", SMALL, "words"),
    "opt": ("OPTForCausalLM", {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32}, "words"),
    "pegasus": ("PegasusForConditionalGeneration", SEQUENCES, "two texts"),
    "phi": ("PhiForCausalLM", SMALL, "words"),
    "phi3": ("Phi3ForCausalLM", SMALL, "words"),
    "qwen2": ("Qwen2ForCausalLM", SMALL, "words"),
    "qwen2_moe": ("Qwen2MoeForCausalLM", EXPERTS, "words"),
    "qwen3": ("Qwen3ForCausalLM", SMALL, "words"),
    "rembert": ("RemBertForMaskedLM", {**SMALL, "input_embedding_size": 16, "output_embedding_size": 16}, "words"),
    "roberta": ("RobertaForMaskedLM", SMALL, "words"),
    "roformer": ("RoFormerForMaskedLM", SMALL, "words"),
    "squeezebert": ("SqueezeBertForMaskedLM", {**SMALL, "embedding_size": 32}, "words"),
    "stablelm": ("StableLmForCausalLM", SMALL, "words"),
    "starcoder2": ("Starcoder2ForCausalLM", SMALL, "words"),
    "t5": ("T5ForConditionalGeneration", T5, "two texts"),
    "mt5": ("MT5ForConditionalGeneration", T5, "two texts"),
    "xglm": ("XGLMForCausalLM", {"vocab_size": WORDS, "d_model": 32, "ffn_dim": 48, "num_layers": 2, "attention_heads": 4,
                                 "max_position_embeddings": 40}, "words"),
    "xlm_roberta": ("XLMRobertaForMaskedLM", SMALL, "words"),
    "xlnet": ("XLNetLMHeadModel", {"vocab_size": WORDS, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48}, "words"),
    "beit": ("BeitForImageClassification", IMAGE, "images"),
    "clip": ("CLIPModel", TEXT_OF_IMAGES, "pairs"),
    "convnext": ("ConvNextForImageClassification", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}, "images"),
    "deit": ("DeiTForImageClassification", IMAGE, "images"),
    "dinov2": ("Dinov2ForImageClassification", IMAGE, "images"),
    "mobilevit": ("MobileViTForImageClassification", {
        "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 16, 24, 32], "image_size": 64, "num_attention_heads": 4},
        "large images"),
    "resnet": ("ResNetForImageClassification", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"},
               "images"),
    "segformer": ("SegformerForImageClassification", {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1],
                                                      "num_attention_heads": [1, 2, 4, 4]}, "large images"),
    "siglip": ("SiglipModel", TEXT_OF_IMAGES, "pairs"),
    "swin": ("SwinForImageClassification", {
        "image_size": 32, "patch_size": 4, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 2], "window_size": 4}, "images"),
    "vit": ("ViTForImageClassification", IMAGE, "images"),
    "vit_msn": ("ViTMSNForImageClassification", IMAGE, "images"),
    "wav2vec2": ("Wav2Vec2ForCTC", {
        **SMALL, "conv_dim": (8, 8), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2,
        "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "apply_spec_augment": False}, "waves"),
    "whisper": ("WhisperForConditionalGeneration", SPEECH, "spectra"),
}  # fmt: skip
TIMM = (
    "resnet18", "vit_tiny_patch16_224", "convnext_atto", "efficientnet_b0", "mobilenetv3_small_050", "regnetx_002", "densenet121",
    "swin_tiny_patch4_window7_224", "mixer_s32_224", "ghostnet_050", "edgenext_xx_small", "poolformer_s12", "levit_128s", "resmlp_12_224",
    "deit_tiny_patch16_224", "xcit_nano_12_p16_224", "maxvit_pico_rw_256", "eva02_tiny_patch14_224",
)  # fmt: skip
TORCHVISION = (
    "alexnet", "vgg11", "resnet18", "squeezenet1_1", "densenet121", "inception_v3", "googlenet", "shufflenet_v2_x0_5", "mobilenet_v2",
    "mobilenet_v3_small", "mnasnet0_5", "efficientnet_b0", "regnet_y_400mf", "vit_b_16", "swin_t", "convnext_tiny",
    "segmentation.lraspp_mobilenet_v3_large", "segmentation.fcn_resnet50", "detection.ssdlite320_mobilenet_v3_large",
)  # fmt: skip


def _inputs(torch: Any, kind: str) -> dict:
    if kind == "images":
        return {"pixel_values": torch.randn(2, 3, 32, 32)}
    if kind == "large images":
        return {"pixel_values": torch.randn(1, 3, 64, 64)}
    if kind == "waves":
        return {"input_values": torch.randn(2, 300)}
    if kind == "spectra":
        return {"input_features": torch.randn(2, 8, 40), "labels": torch.randint(3, WORDS, (2, 9))}
    words = torch.randint(3, WORDS, (2, 9))
    mask = torch.ones_like(words)
    mask[1, 6:] = 0
    found = {"input_ids": words} if kind == "plain words" else {"input_ids": words, "attention_mask": mask}
    if kind == "two texts":
        found["decoder_input_ids"] = torch.randint(3, WORDS, (2, 7))
    return {**found, "pixel_values": torch.randn(2, 3, 32, 32)} if kind == "pairs" else found


def cases(torch: Any) -> dict[str, Any]:
    """Functions that return a model and the arguments of its call, by name."""
    found: dict[str, Any] = {}

    def of_transformers(kind: str, options: dict, inputs: str) -> Any:
        import transformers

        model = getattr(transformers, kind)
        return model(model.config_class(**options)), (), _inputs(torch, inputs)

    def of_timm(name: str) -> Any:
        import timm

        size = 256 if "256" in name else 224 if "224" in name or "vit" in name or "eva" in name else 64
        return timm.create_model(name, pretrained=False, num_classes=10), (torch.randn(1, 3, size, size),), {}

    def of_torchvision(name: str) -> Any:
        import torchvision

        where = torchvision.models
        options: dict = {"weights": None}
        folder, _, short = name.rpartition(".")
        if folder:
            where, options = getattr(where, folder), {"weights": None, "weights_backbone": None}
        if name in ("inception_v3", "googlenet"):
            options["init_weights"] = False
        size = {"inception_v3": 96, "vit_b_16": 224}.get(name, 64)
        image = torch.randn(1, 3, size, size)
        return getattr(where, short)(**options), ([image[0]],) if folder == "detection" else (image,), {}

    for name, row in TRANSFORMERS.items():
        found[f"transformers {name}"] = lambda row=row: of_transformers(*row)
    for name in TIMM:
        found[f"timm {name}"] = lambda name=name: of_timm(name)
    for name in TORCHVISION:
        found[f"torchvision {name}"] = lambda name=name: of_torchvision(name)
    return found


def _leaves(value: Any) -> list:
    if hasattr(value, "dtype"):
        return [value]
    if hasattr(value, "to_tuple"):
        value = value.to_tuple()
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for v in value for leaf in _leaves(v)] if isinstance(value, (list, tuple)) else []


def capture(torch: Any, make: Any) -> dict[str, Any]:
    """Graphs, breaks and their reasons of a model's first call, and whether its results are those of plain Python."""
    from importlib import import_module

    torch.manual_seed(0)
    model, args, kwargs = make()
    model = model.eval()
    with torch.no_grad():
        want = _leaves(model(*args, **kwargs))
        torch._dynamo.reset()
        counters = import_module(f"{torch.__name__}._dynamo.utils").counters
        counters.clear()
        graphs: list = []

        def backend(module: Any, _inputs: Any) -> Any:
            graphs.append(sum(node.op not in ("placeholder", "output") for node in module.graph.nodes))
            return module.forward

        began = time.monotonic()
        got = _leaves(torch.compile(model, backend=backend)(*args, **kwargs))
        seconds = time.monotonic() - began
    reasons = {str(k).splitlines()[0][:120]: v for k, v in counters["graph_break"].items()}
    skipped = {str(k).splitlines()[0][:160]: v for k, v in counters.get("skipped", {}).items()}
    is_same = len(got) == len(want) and all(torch.allclose(a.float(), b.float(), 1e-4, 1e-4, equal_nan=True) for a, b in zip(got, want))
    return {
        "graphs": len(graphs), "breaks": sum(reasons.values()), "seconds": round(seconds, 2), "operators": sum(graphs), "same": is_same,
        "reasons": reasons, "skipped": skipped,
    }  # fmt: skip


def is_whole(row: dict) -> bool:
    """Whether a model was captured as one graph."""
    return row.get("graphs") == 1 and row.get("breaks") == 0 and bool(row.get("same"))


def table(ours: dict, theirs: dict) -> str:
    """The table of docs/conformance.md."""
    columns = "library", "models", "one graph: teletensor", "one graph: PyTorch 2.15", "breaks: teletensor", "breaks: PyTorch"
    lines = [f"| {' | '.join(columns)} |", "|---|---|---|---|---|---|"]
    names = [n for n in ours if n in theirs and "error" not in theirs[n]]
    for library in ("transformers", "timm", "torchvision", ""):
        rows = [n for n in names if n.startswith(library)]
        counts = [sum(is_whole(found[n]) for n in rows) for found in (ours, theirs)]
        breaks = [sum(found[n].get("breaks", 0) for n in rows) for found in (ours, theirs)]
        lines.append(f"| {library or 'all'} | {len(rows)} | {counts[0]} | {counts[1]} | {breaks[0]} | {breaks[1]} |")
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1] != "--one":
        ours, theirs = (json.loads(pathlib.Path(p).read_text()) for p in sys.argv[1:3])
        print(table(ours, theirs))
        for name, row in ours.items():
            if not is_whole(row):
                print(f"  {name}: {row} against {theirs.get(name)}")
        return
    warnings.simplefilter("ignore")
    import torch

    if "teletensor" in torch.__name__ or hasattr(torch, "connection"):
        torch = sys.modules["torch"]

    def late(*_: Any) -> None:
        raise TimeoutError("took more than 300 s")

    signal.signal(signal.SIGALRM, late)
    file = pathlib.Path(sys.argv[2])
    found = json.loads(file.read_text()) if file.exists() else {}
    for name, make in cases(torch).items():
        if sys.argv[3:] and not any(part in name for part in sys.argv[3:]):
            continue
        signal.alarm(300)
        try:
            found[name] = capture(torch, make)
        except Exception as e:  # noqa: BLE001 - reported as a row
            found[name] = {"error": f"{type(e).__name__}: {str(e)[:300]}"}
        finally:
            signal.alarm(0)
        print(name, found[name], file=sys.stderr, flush=True)
        file.write_text(json.dumps(found, indent=0))


if __name__ == "__main__":
    main()
