# SPDX-License-Identifier: BSD-3-Clause
"""transformers' Trainer on ranks, with devices that accelerate assigns.

Run it as ``torchrun --nproc-per-node 2 transformers_trainer.py [openreg | cpu]``.
"""

from __future__ import annotations

import sys
import tempfile

import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.set_num_threads(1)  # the same summation order on both devices
transformers.utils.logging.disable_progress_bar()
transformers.logging.set_verbosity_error()
# [docs: enable]
if device == "openreg":
    from torch_openreg.integrations import accelerate as openreg_accelerate

    openreg_accelerate.enable()
# [docs: end]
torch.manual_seed(0)
model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=32,
        n_positions=8,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
)
rows = [{"input_ids": row, "labels": row} for row in torch.randint(32, (16, 8))]
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            folder,
            max_steps=4,
            per_device_train_batch_size=2,
            logging_steps=1,
            report_to=[],
            disable_tqdm=True,
            save_strategy="no",
            use_cpu=device == "cpu",
        ),
        train_dataset=rows,
        eval_dataset=rows,
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    evaluated = trainer.evaluate()["eval_loss"]
if trainer.is_world_process_zero():
    losses = [log["loss"] for log in trainer.state.log_history if "loss" in log]
    print("losses:", losses)
    print("evaluated:", evaluated)
    print("ranks:", trainer.args.world_size)
    print("device:", trainer.model.device.type)
torch.distributed.destroy_process_group()
