# SPDX-License-Identifier: BSD-3-Clause
"""Models are saved, loaded, distributed and trained with accelerate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from accelerate.state import AcceleratorState
from torch import nn

from .architectures import ARCHITECTURES
from .training import Numbers, built, differing, moved


def weights(model: nn.Module) -> Numbers:
    """Returns the weights on the CPU."""
    return {key: value.cpu() for key, value in model.state_dict().items()}


@pytest.mark.parametrize("name", ["gpt2", "llama", "mixtral", "t5", "clip"])
def test_model_is_saved_from_the_device_and_loaded_onto_it(
    device: str, name: str, tmp_path: Path
) -> None:
    model = built(name, ARCHITECTURES[name].attention[0])
    expected = weights(model)
    model.to(device).save_pretrained(tmp_path)
    for place in ("cpu", device, f"{device}:1"):
        loaded = type(model).from_pretrained(tmp_path, device_map=place)
        assert loaded.device == torch.zeros(1, device=place).device
        assert differing(weights(loaded), expected) == []
        tied = list(loaded.named_parameters())
        assert len(tied) == len(list(model.named_parameters()))


@pytest.mark.parametrize("rest", ["device:1", "cpu"])
def test_model_is_spread_over_devices(device: str, rest: str, tmp_path: Path) -> None:
    """Layers on another device, or offloaded to the CPU until they are needed."""
    first, rest = f"{device}:0", rest.replace("device", device)
    model = built("llama", "sdpa").eval()
    inputs = ARCHITECTURES["llama"].inputs()
    model.save_pretrained(tmp_path)
    places = {"model.embed_tokens": first, "model.rotary_emb": first}
    places |= {"model.layers.0": first, "model.layers.1": rest}
    places |= {"model.norm": rest, "lm_head": rest}
    spread = type(model).from_pretrained(tmp_path, device_map=places).eval()
    with torch.no_grad():
        logits = spread(**moved(inputs, first)).logits
        assert torch.equal(logits.cpu(), model(**inputs).logits)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gradient_accumulation_steps": 2, "optim": "adamw_torch_fused"},
        {"activation_checkpointing": True, "optim": "adafactor"},
    ],
    ids=["plain", "accumulated", "checkpointed"],
)
def test_trainer_trains_with_cpu_numbers(
    device: str,
    options: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without dropout, because on the CPU the data loader draws before it."""
    results = []
    for place in (device, "cpu"):
        AcceleratorState._reset_state(reset_partial_state=True)
        monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", place)
        arguments = transformers.TrainingArguments(
            str(tmp_path / place),
            max_steps=4,
            per_device_train_batch_size=2,
            logging_steps=1,
            report_to=[],
            disable_tqdm=True,
            use_cpu=place == "cpu",
            **options,
        )
        model = built("gpt2", "eager")
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        inputs = ARCHITECTURES["gpt2"].inputs()
        rows = [{key: value[i % 2] for key, value in inputs.items()} for i in range(8)]
        trainer = transformers.Trainer(
            model=model, args=arguments, train_dataset=rows, eval_dataset=rows
        )
        trainer.train()
        assert model.device.type == place
        losses = [log["loss"] for log in trainer.state.log_history if "loss" in log]
        losses.append(trainer.evaluate()["eval_loss"])
        results.append((losses, weights(model)))
    AcceleratorState._reset_state(reset_partial_state=True)
    assert results[0][0] == results[1][0]
    assert differing(results[0][1], results[1][1]) == []
