# SPDX-License-Identifier: BSD-3-Clause
"""The table of architectures: a row creates a small model and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from torch import Tensor, nn

Inputs = dict[str, Tensor]
Options = dict[str, Any]

VOCABULARY = 100
SPECIAL_TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
WORDS = {"vocab_size": VOCABULARY, **SPECIAL_TOKENS}
# The size options of most configurations.
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
TEXT = {**WORDS, **SIZES, "max_position_embeddings": 64}
# Several queries share a key, and attention has dropout.
GROUPED = {**TEXT, "num_key_value_heads": 2, "attention_dropout": 0.1}
EXPERTS = {
    **GROUPED,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
}
# The loss then includes how evenly the experts are used.
ROUTED = {"output_router_logits": True}
OPT_SIZES = {
    **WORDS,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
}


def tokens(generator: torch.Generator, length: int) -> Tensor:
    """Draws two sequences of tokens without special tokens."""
    return torch.randint(3, VOCABULARY, (2, length), generator=generator)


def prompt(generator: torch.Generator, length: int = 12) -> Inputs:
    """Draws two sequences, the first of which is padded on the left."""
    ids = tokens(generator, length)
    mask = torch.ones_like(ids)
    ids[0, :3], mask[0, :3] = 0, 0
    return {"input_ids": ids, "attention_mask": mask}


def text(generator: torch.Generator) -> Inputs:
    """Sequences with each token as a label, except for the padding."""
    drawn = prompt(generator)
    labels = drawn["input_ids"].masked_fill(drawn["attention_mask"] == 0, -100)
    return drawn | {"labels": labels}


def bare_text(generator: torch.Generator) -> Inputs:
    """Sequences without padding, and each token as a label."""
    ids = tokens(generator, 12)
    return {"input_ids": ids, "labels": ids}


def pairs(generator: torch.Generator) -> Inputs:
    """Draws sequences and the target sequences of an encoder-decoder."""
    return prompt(generator) | {"labels": tokens(generator, 9)}


def images(generator: torch.Generator) -> Inputs:
    """Two images of two classes."""
    pixels = torch.randn(2, 3, 32, 32, generator=generator)
    return {"pixel_values": pixels, "labels": torch.tensor([0, 1])}


def captions(generator: torch.Generator) -> Inputs:
    """Two images and their captions."""
    pixels = images(generator)["pixel_values"]
    return prompt(generator) | {"pixel_values": pixels}


def waves(generator: torch.Generator) -> Inputs:
    """Two sounds and their transcripts."""
    sounds = torch.randn(2, 2000, generator=generator)
    return {"input_values": sounds, "labels": tokens(generator, 4)}


def spectra(generator: torch.Generator) -> Inputs:
    """Two spectrograms and their transcripts."""
    features = torch.randn(2, 8, 40, generator=generator)
    return {"input_features": features, "labels": tokens(generator, 9)}


def adamw(parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-2)


def sgd(parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1e-2, momentum=0.9)


@dataclass(frozen=True)
class Architecture:
    """One row.

    Attributes:
        model: The class of the model, in transformers.
        config: The class of its configuration, without ``Config``.
        draw: Draws the training inputs; without the labels, they are also the inputs of
            generation.
        sizes: The configuration.
        attention: The supported implementations of attention.
        generates: Whether it generates text.
        optimizer: Creates its optimizer.
        call: Further arguments of a training call.
    """

    model: str
    config: str
    draw: Callable[[torch.Generator], Inputs]
    sizes: Options
    attention: tuple[str, ...] = ("eager", "sdpa")
    generates: bool = True
    optimizer: Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer] = adamw
    call: Options = field(default_factory=dict)

    def build(self, attention: str) -> nn.Module:
        """Creates the model with random weights on the CPU."""
        config = getattr(transformers, f"{self.config}Config")(**self.sizes)
        config._attn_implementation = attention
        model: nn.Module = getattr(transformers, self.model)(config)
        return model

    def inputs(self) -> Inputs:
        """Returns a training batch on the CPU."""
        return self.draw(torch.Generator().manual_seed(3))


EAGER = ("eager",)

ARCHITECTURES = {
    # decoders
    "gpt2": Architecture(
        "GPT2LMHeadModel",
        "GPT2",
        text,
        {**WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    ),
    "llama": Architecture("LlamaForCausalLM", "Llama", text, GROUPED),
    "mistral": Architecture(
        "MistralForCausalLM", "Mistral", text, {**GROUPED, "sliding_window": 4}
    ),
    "qwen2": Architecture("Qwen2ForCausalLM", "Qwen2", text, GROUPED),
    "qwen3": Architecture(
        "Qwen3ForCausalLM", "Qwen3", text, {**GROUPED, "head_dim": 8}
    ),
    "gemma": Architecture(
        "GemmaForCausalLM", "Gemma", text, {**GROUPED, "head_dim": 8}
    ),
    "gemma2": Architecture(
        "Gemma2ForCausalLM",
        "Gemma2",
        text,
        {**GROUPED, "head_dim": 8, "sliding_window": 4},
        EAGER,
    ),
    "gemma3": Architecture(
        "Gemma3ForCausalLM",
        "Gemma3Text",
        text,
        {**GROUPED, "head_dim": 8, "sliding_window": 4},
    ),
    "opt": Architecture(
        "OPTForCausalLM",
        "OPT",
        text,
        {**TEXT, "ffn_dim": 64, "word_embed_proj_dim": 32},
        optimizer=sgd,
    ),
    "bloom": Architecture(
        "BloomForCausalLM",
        "Bloom",
        text,
        {**WORDS, "hidden_size": 32, "n_layer": 2, "n_head": 4},
        EAGER,
    ),
    "falcon": Architecture(
        "FalconForCausalLM", "Falcon", text, {**TEXT, "alibi": False}
    ),
    "falcon_alibi": Architecture(
        "FalconForCausalLM", "Falcon", text, {**TEXT, "alibi": True}
    ),
    "gpt_neox": Architecture("GPTNeoXForCausalLM", "GPTNeoX", text, TEXT),
    "phi": Architecture("PhiForCausalLM", "Phi", text, TEXT, optimizer=sgd),
    "olmo2": Architecture("Olmo2ForCausalLM", "Olmo2", text, GROUPED),
    "mamba": Architecture(
        "MambaForCausalLM",
        "Mamba",
        text,
        {**WORDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
        EAGER,
    ),
    # mixtures of experts
    "mixtral": Architecture(
        "MixtralForCausalLM",
        "Mixtral",
        text,
        {**GROUPED, "num_local_experts": 4},
        call=ROUTED,
    ),
    "qwen2_moe": Architecture(
        "Qwen2MoeForCausalLM",
        "Qwen2Moe",
        text,
        {**EXPERTS, "shared_expert_intermediate_size": 32},
        call=ROUTED,
    ),
    "qwen3_moe": Architecture(
        "Qwen3MoeForCausalLM",
        "Qwen3Moe",
        text,
        {**EXPERTS, "head_dim": 8},
        call=ROUTED,
    ),
    # encoders
    "bert": Architecture("BertForMaskedLM", "Bert", text, TEXT, generates=False),
    "roberta": Architecture(
        "RobertaForMaskedLM", "Roberta", text, TEXT, generates=False
    ),
    "distilbert": Architecture(
        "DistilBertForMaskedLM",
        "DistilBert",
        text,
        {**WORDS, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
        generates=False,
    ),
    "albert": Architecture(
        "AlbertForMaskedLM",
        "Albert",
        text,
        {**TEXT, "embedding_size": 16},
        generates=False,
        optimizer=sgd,
    ),
    "deberta_v2": Architecture(
        "DebertaV2ForMaskedLM",
        "DebertaV2",
        text,
        {
            **TEXT,
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "norm_rel_ebd": "layer_norm",
            "conv_kernel_size": 3,
        },
        EAGER,
        generates=False,
    ),
    "electra": Architecture(
        "ElectraForMaskedLM",
        "Electra",
        text,
        {**TEXT, "embedding_size": 16},
        generates=False,
    ),
    "modernbert": Architecture(
        "ModernBertForMaskedLM",
        "ModernBert",
        text,
        {**TEXT, "local_attention": 4},
        generates=False,
    ),
    "longformer": Architecture(
        "LongformerForMaskedLM",
        "Longformer",
        text,
        {**TEXT, "attention_window": 4},
        EAGER,
        generates=False,
    ),
    "fnet": Architecture(  # Fourier transforms
        "FNetForMaskedLM", "FNet", bare_text, TEXT, EAGER, generates=False
    ),
    # encoder-decoders
    "t5": Architecture(
        "T5ForConditionalGeneration",
        "T5",
        pairs,
        {
            **WORDS,
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 64,
            "num_layers": 2,
            "num_heads": 4,
            "decoder_start_token_id": 0,
        },
        EAGER,
    ),
    "bart": Architecture("BartForConditionalGeneration", "Bart", pairs, OPT_SIZES),
    "marian": Architecture("MarianMTModel", "Marian", pairs, OPT_SIZES),
    "pegasus": Architecture(
        "PegasusForConditionalGeneration", "Pegasus", pairs, OPT_SIZES
    ),
    # vision
    "vit": Architecture(
        "ViTForImageClassification",
        "ViT",
        images,
        {**SIZES, "image_size": 32, "patch_size": 8},
        generates=False,
    ),
    "swin": Architecture(
        "SwinForImageClassification",
        "Swin",
        images,
        {
            "image_size": 32,
            "patch_size": 2,
            "embed_dim": 16,
            "depths": [1, 2],
            "num_heads": [2, 4],
            "window_size": 4,
        },
        EAGER,
        generates=False,
    ),
    "convnext": Architecture(
        "ConvNextForImageClassification",
        "ConvNext",
        images,
        {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2},
        EAGER,
        generates=False,
        optimizer=sgd,
    ),
    "resnet": Architecture(  # batch norm
        "ResNetForImageClassification",
        "ResNet",
        images,
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]},
        EAGER,
        generates=False,
    ),
    "clip": Architecture(
        "CLIPModel",
        "CLIP",
        captions,
        {
            "text_config": TEXT,
            "vision_config": {**SIZES, "image_size": 32, "patch_size": 8},
            "projection_dim": 16,
        },
        generates=False,
        call={"return_loss": True},
    ),
    # sound
    "wav2vec2": Architecture(
        "Wav2Vec2ForCTC",
        "Wav2Vec2",
        waves,
        {
            **WORDS,
            **SIZES,
            "conv_dim": [16, 16, 16],
            "conv_kernel": [8, 3, 3],
            "conv_stride": [5, 4, 4],
            "num_conv_pos_embeddings": 8,
            "num_conv_pos_embedding_groups": 4,
            "mask_time_length": 4,
            "layerdrop": 0.0,
        },
        generates=False,
    ),
    "whisper": Architecture(
        "WhisperForConditionalGeneration",
        "Whisper",
        spectra,
        {
            **OPT_SIZES,
            "num_mel_bins": 8,
            "max_source_positions": 20,
            "max_target_positions": 40,
            "suppress_tokens": [],
            "begin_suppress_tokens": [],
        },
    ),
}
CASES = [
    (name, attention)
    for name, architecture in ARCHITECTURES.items()
    for attention in architecture.attention
]
