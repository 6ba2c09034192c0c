# SPDX-License-Identifier: BSD-3-Clause
"""transformers' Trainer, stopped and resumed with the same random numbers."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

device = sys.argv[1] if len(sys.argv) > 1 else "openreg:0"
os.environ["ACCELERATE_TORCH_DEVICE"] = device  # or in the shell
torch.set_num_threads(1)  # the same summation order on both devices
transformers.utils.logging.disable_progress_bar()
transformers.logging.set_verbosity_error()


# [docs: callback]
class DeviceRandomState(transformers.TrainerCallback):
    """Saves device RNG states in checkpoints, which the Trainer does not do.

    Args:
        resume_from: The checkpoint that ``Trainer.train`` resumes from, if any.
    """

    def __init__(self, resume_from: str | None = None) -> None:
        self.resume_from = resume_from

    def on_save(self, args, state, control, **kwargs) -> None:
        """Writes the states of all devices into the checkpoint."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        states = torch.get_device_module(args.device).get_rng_state_all()
        torch.save(states, folder / "device_rng_state.pth")

    def on_step_begin(self, args, state, control, **kwargs) -> None:
        """Restores the states before the first step, after the Trainer's own states."""
        if self.resume_from is not None:
            states = torch.load(Path(self.resume_from) / "device_rng_state.pth")
            torch.get_device_module(args.device).set_rng_state_all(states)
            self.resume_from = None


# [docs: end]
def trained(
    folder: str,
    dropout: float = 0.1,
    resume_from: str | None = None,
    callbacks: tuple[transformers.TrainerCallback, ...] = (),
) -> list[float]:
    """Trains for four steps, or resumes for the last two; returns the losses."""
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=32,
        n_positions=8,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
        resid_pdrop=dropout,
        embd_pdrop=dropout,
        attn_pdrop=dropout,
    )
    model = GPT2LMHeadModel(config)
    tokens = torch.randint(32, (8, 8))
    rows = [{"input_ids": row, "labels": row} for row in tokens]
    arguments = TrainingArguments(
        folder,
        max_steps=4,
        save_steps=2,
        per_device_train_batch_size=2,
        logging_steps=1,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model, args=arguments, train_dataset=rows, callbacks=list(callbacks)
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train(resume_from_checkpoint=resume_from)
    assert model.device.type == torch.device(device).type
    return [log["loss"] for log in trainer.state.log_history if "loss" in log]


with tempfile.TemporaryDirectory() as folder:
    print("losses:", trained(folder, dropout=0.0))
    if device != "cpu":
        # With dropout, the losses depend on the device generator.
        checkpoint = f"{folder}/checkpoint-2"
        whole = trained(folder, callbacks=(DeviceRandomState(),))
        callbacks = (DeviceRandomState(checkpoint),)
        resumed = trained(folder, resume_from=checkpoint, callbacks=callbacks)
        without = trained(folder, resume_from=checkpoint)
        print("same losses with the callback:", resumed == whole)
        # prints: same losses with the callback: True
        print("same losses without it:", without == whole)
        # prints: same losses without it: False
print("device:", torch.device(device).type)
