# SPDX-License-Identifier: BSD-3-Clause
"""trl's SFTTrainer in bfloat16, with peft adapters."""

from __future__ import annotations

import os
import sys
import tempfile

import datasets
import torch
import transformers
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

device = sys.argv[1] if len(sys.argv) > 1 else "openreg:0"
os.environ["ACCELERATE_TORCH_DEVICE"] = device  # or in the shell
os.environ["ACCELERATE_MIXED_PRECISION"] = "bf16"
torch.set_num_threads(1)
datasets.disable_progress_bars()
transformers.logging.set_verbosity_error()

words = ["[PAD]", "[EOS]", "[UNK]", *"abcdefgh"]
tokenizer = Tokenizer(
    models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
)
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=len(words),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=1,
    )
)
with tempfile.TemporaryDirectory() as folder:
    trainer = SFTTrainer(
        model=model,
        args=SFTConfig(
            folder,
            bf16=False,  # set above instead; transformers rejects trl's default
            max_steps=4,
            per_device_train_batch_size=2,
            logging_steps=1,
            learning_rate=1e-2,
            report_to=[],
            disable_tqdm=True,
            save_strategy="no",
        ),
        train_dataset=datasets.Dataset.from_dict({"text": ["a b c d", "e f g h"] * 4}),
        processing_class=PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            pad_token="[PAD]",
            eos_token="[EOS]",
            unk_token="[UNK]",
        ),
        peft_config=LoraConfig(r=4, lora_dropout=0.0, target_modules=["q_proj"]),
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
print("losses:", [log["loss"] for log in trainer.state.log_history if "loss" in log])
print("computes in:", trainer.accelerator.mixed_precision)
# prints: computes in: bf16
print("device:", trainer.model.device.type)
