# SPDX-License-Identifier: BSD-3-Clause
"""device_map="auto": a model that is spread over devices within max_memory."""

from __future__ import annotations

import sys
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.set_num_threads(1)
device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
).eval()
tokens = torch.arange(8).reshape(1, 8)
with torch.no_grad():
    expected = model(tokens).logits

with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    if device == "cpu":
        spread = LlamaForCausalLM.from_pretrained(folder)
    else:
        # [docs: spread]
        spread = LlamaForCausalLM.from_pretrained(
            folder, device_map="auto", max_memory={0: "60KB", 1: "200KB", "cpu": "1GB"}
        )
        places = sorted({str(weight.device) for weight in spread.parameters()})
        print("weights on:", places)
        # prints: weights on: ['openreg:0', 'openreg:1']
        # [docs: end]
        whole = LlamaForCausalLM.from_pretrained(folder, device_map="auto")
        print("without max_memory:", whole.device)
        # prints: without max_memory: cpu
with torch.no_grad():
    logits = spread(tokens.to(spread.device)).logits
print("same numbers as on the CPU:", torch.equal(logits.cpu(), expected))
# prints: same numbers as on the CPU: True
print("device:", spread.device.type)
