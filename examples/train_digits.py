# SPDX-License-Identifier: BSD-3-Clause
"""Trains a convolutional network on handwritten digits, on openreg and on the CPU.

Trains in float32 on both and in mixed precision on openreg, loads a checkpoint on the
CPU, draws the curves and prints the two devices side by side.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

mpl.use("Agg")
from matplotlib import pyplot as plt

BATCH = 64
TEST_IMAGES = 360


@dataclass
class Run:
    """The results of one training run.

    Attributes:
        device: Name of the device, as given to :func:`train`.
        precision: ``"float32"`` or ``"autocast"``.
        losses: Training loss of every step.
        allocated: Device memory in use after every step, in bytes.
        peaks: Highest device memory in use during every step, in bytes.
        step_ms: Milliseconds per step, including loading; median over the epochs.
        accuracy: Share of correctly classified test images, 0 to 1.
        model: The trained network, still on its device.
    """

    device: str
    precision: str
    losses: list[float] = field(default_factory=list)
    allocated: list[int] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    step_ms: float = 0.0
    accuracy: float = 0.0
    model: nn.Module = field(default_factory=nn.Identity, repr=False)

    @property
    def name(self) -> str:
        """Label of the run in the table and in the picture."""
        return f"{self.device} {self.precision}"


def load_data(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Splits the 1797 digits into training and test images.

    Args:
        seed: Seed of the shuffle before the split.

    Returns:
        Training and test set of pairs: image (1, 8, 8) float32 in 0..1, label int64.
    """
    digits = load_digits()
    order = torch.randperm(
        len(digits.target), generator=torch.Generator().manual_seed(seed)
    )
    images = torch.tensor(digits.images, dtype=torch.float32)[order, None] / 16
    labels = torch.tensor(digits.target, dtype=torch.int64)[order]
    train = TensorDataset(images[:-TEST_IMAGES], labels[:-TEST_IMAGES])
    return train, TensorDataset(images[-TEST_IMAGES:], labels[-TEST_IMAGES:])


def build_model(seed: int) -> nn.Module:
    """Builds the network on the CPU; the same seed gives the same weights.

    Returns:
        A module from images (N, 1, 8, 8) to scores (N, 10).
    """
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(32 * 4 * 4, 10),
    )


def evaluate(model: nn.Module, data: TensorDataset, device: str) -> float:
    """Measures the accuracy of ``model`` for ``data`` on ``device``, 0 to 1."""
    model.eval()
    images, labels = (tensor.to(device) for tensor in data.tensors)
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def synchronize(device: str) -> None:
    """Waits for the work of ``device``; returns immediately for the CPU."""
    if torch.device(device).type != "cpu":
        torch.accelerator.synchronize(device)


def train(
    device: str,
    *,
    epochs: int = 8,
    seed: int = 0,
    autocast: bool = False,
    workers: int = 2,
    progress: bool = True,
) -> Run:
    """Trains the network on ``device`` and evaluates it there.

    Losses stay on the device until an epoch ends, so the host never waits for a step.
    Two runs with the same seed use the same weights and batches.

    Args:
        device: Where to train, for example ``"openreg"``, ``"openreg:1"``, ``"cpu"``.
        epochs: Passes over the training images, at least 1.
        seed: Seed of the split, the weights, the order of the batches and dropout.
        autocast: Train in float16 with a gradient scaler.
        workers: Processes that load batches.
        progress: Show a progress bar on stderr.

    Returns:
        The curves, timings and trained network; memory curves are empty on the CPU.
    """
    run = Run(device, "autocast" if autocast else "float32")
    kind = torch.device(device).type
    simulated = kind != "cpu"
    memory = torch.get_device_module(kind)  # torch.openreg
    train_data, test_data = load_data(seed)
    loader = DataLoader(
        train_data,
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
        pin_memory=simulated,
        generator=torch.Generator().manual_seed(seed),
    )
    run.model = model = build_model(seed).to(device)
    torch.manual_seed(seed)  # dropout draws from the generator of its device
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler(kind, enabled=autocast)

    def step(images: Tensor, labels: Tensor) -> Tensor:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast(kind, dtype=torch.float16, enabled=autocast):
            loss = loss_of(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    epoch_ms = []
    with tqdm(
        total=epochs * len(loader), desc=run.name, unit="step", disable=not progress
    ) as bar:
        for _ in range(epochs):
            model.train()
            losses = []
            start = time.perf_counter()
            for images, labels in loader:
                if simulated:
                    memory.reset_peak_memory_stats(device)
                losses.append(step(images, labels))
                if simulated:
                    run.allocated.append(memory.memory_allocated(device))
                    run.peaks.append(memory.max_memory_allocated(device))
                bar.update()
            synchronize(device)
            epoch_ms.append((time.perf_counter() - start) * 1e3 / len(losses))
            run.losses += torch.stack(losses).tolist()
            bar.set_postfix(loss=f"{run.losses[-1]:.3f}")
    # The first epoch also starts the workers and warms the allocator.
    run.step_ms = statistics.median(epoch_ms[1:] or epoch_ms)
    run.accuracy = evaluate(model, test_data, device)
    return run


def reload_on_cpu(run: Run, path: Path, seed: int) -> float:
    """Saves the weights of a run from its device and evaluates them on the CPU.

    Returns:
        Test accuracy on the CPU, 0 to 1.
    """
    torch.save({"model": run.model.state_dict(), "losses": run.losses}, path)
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    model = build_model(seed)
    model.load_state_dict(checkpoint["model"])
    return evaluate(model, load_data(seed)[1], "cpu")


def draw(runs: list[Run], path: Path) -> None:
    """Draws the loss curves and the device memory of ``runs`` into a PNG file."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    styles = ["-", "--", ":"]
    for run, style in zip(runs, styles, strict=False):
        left.plot(run.losses, style, label=run.name)
        if run.allocated:
            (line,) = right.plot(
                [size / 2**20 for size in run.allocated], label=f"{run.name}, in use"
            )
            right.plot(
                [size / 2**20 for size in run.peaks],
                "--",
                color=line.get_color(),
                label=f"{run.name}, peak of the step",
            )
    left.set(title="Training loss", xlabel="step", yscale="log")
    right.set(title="Device memory", xlabel="step", ylabel="MiB")
    for axis in (left, right):
        axis.grid(alpha=0.3)
        if axis.lines:
            axis.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def table(runs: list[Run], reference: Run) -> str:
    """Formats the final table, with ratios to ``reference``, the run on the CPU."""
    lines = [
        f"{'run':<24}{'accuracy':>10}{'ms/step':>10}{'x CPU':>8}{'peak memory':>14}"
    ]
    for run in runs:
        peak = f"{max(run.peaks) / 2**20:.2f} MiB" if run.peaks else "-"
        lines.append(
            f"{run.name:<24}{run.accuracy:>10.2%}{run.step_ms:>10.2f}"
            f"{run.step_ms / reference.step_ms:>8.2f}{peak:>14}"
        )
    return "\n".join(lines)


def positive(text: str) -> int:
    """Parses a positive integer for argparse."""
    value = int(text) if text.isdecimal() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return value


def seed_value(text: str) -> int:
    """Parses a seed, 0 to 2**63 - 1, for argparse."""
    value = int(text) if text.isdecimal() else -1
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number from 0 to 2**63 - 1"
        )
    return value


def usable_device(text: str) -> str:
    """Checks for argparse that ``text`` names a usable device."""
    try:
        torch.ones(1, device=text).cpu()
    except (RuntimeError, ValueError, AssertionError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a usable device: {reason}"
        ) from error
    return text


def output_folder(text: str) -> Path:
    """Creates the output folder for argparse."""
    path = Path(text)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"cannot create the folder {text!r}: {error.strerror}"
        ) from error
    return path


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--device",
        type=usable_device,
        default="openreg",
        help="device to compare with the CPU (default: openreg)",
    )
    parser.add_argument(
        "--epochs", type=positive, default=8, help="passes over the data (default: 8)"
    )
    parser.add_argument(
        "--seed", type=seed_value, default=0, help="random seed (default: 0)"
    )
    parser.add_argument(
        "--output",
        type=output_folder,
        default="build/demo",
        help="folder for the picture and the checkpoint (default: build/demo)",
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Runs the demonstration.

    Returns:
        0, or 1 if the float32 loss curves of the two devices differ.
    """
    options = parse_arguments(arguments)
    # With one thread, both devices sum in the same order.
    torch.set_num_threads(1)

    device_run = train(options.device, epochs=options.epochs, seed=options.seed)
    checkpoint = options.output / "digits.pt"
    on_cpu = reload_on_cpu(device_run, checkpoint, options.seed)
    device_run.model.cpu()  # frees device memory for the next run
    cpu_run = train("cpu", epochs=options.epochs, seed=options.seed)
    mixed_run = train(
        options.device, epochs=options.epochs, seed=options.seed, autocast=True
    )
    runs = [device_run, cpu_run, mixed_run]

    picture = options.output / "digits.png"
    draw(runs, picture)

    equal = device_run.losses == cpu_run.losses
    print(f"\n{table(runs, cpu_run)}\n")
    print(
        f"float32 loss curve on {options.device} matches the CPU bit for bit: "
        f"{'yes' if equal else 'NO'} ({len(cpu_run.losses)} steps)"
    )
    print(f"checkpoint {checkpoint}, accuracy on the CPU: {on_cpu:.2%}")
    print(f"picture {picture}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
