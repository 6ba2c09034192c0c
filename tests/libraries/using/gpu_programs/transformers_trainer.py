# SPDX-License-Identifier: BSD-3-Clause
"""The Trainer of transformers with the defaults for GPUs: cpu or cuda, [OPTION ...]."""

from __future__ import annotations

import sys
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
)


class Words(Dataset):
    """Rows of words, whose class is that of their first word."""

    def __init__(self) -> None:
        random = torch.Generator().manual_seed(1)
        self.words = torch.randint(0, 50, (16, 12), generator=random)

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        words = self.words[index]
        return {"input_ids": words, "labels": words[0] % 2}


def main(device: str, *options: str) -> None:
    """Trains, and prints the losses and the sums of the weights."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=50,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=37,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            disable_tqdm=True,
            logging_steps=2,
            max_steps=4,
            per_device_train_batch_size=4,
            report_to=[],
            save_strategy="no",
            use_cpu=device == "cpu",
            **dict.fromkeys(options, True),
        )
        trainer = Trainer(model, arguments, train_dataset=Words())
        trainer.train()
        assert arguments.device.type == device
        assert next(model.parameters()).device.type == device
        logged = [entry["loss"] for entry in trainer.state.log_history[:-1]]
    print("losses", logged)
    print("weights", [each.double().sum().item() for each in model.parameters()])


if __name__ == "__main__":
    main(*sys.argv[1:])
