# SPDX-License-Identifier: BSD-3-Clause
"""torchmetrics: metrics that are moved like modules and computed on the device."""

from __future__ import annotations

import sys

import torch
from torchmetrics import MeanSquaredError, MetricCollection, PearsonCorrCoef
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
)
from torchmetrics.image import StructuralSimilarityIndexMeasure

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.set_num_threads(1)
torch.manual_seed(0)
classes = MetricCollection(
    [
        MulticlassAccuracy(5),
        MulticlassF1Score(5),
        MulticlassAUROC(5),
        MulticlassConfusionMatrix(5),
    ]
).to(device)
numbers = MetricCollection([MeanSquaredError(), PearsonCorrCoef()]).to(device)
similarity = StructuralSimilarityIndexMeasure(data_range=1.0).to(device)
for _ in range(3):
    scores, labels = torch.randn(64, 5).to(device), torch.randint(5, (64,)).to(device)
    classes.update(scores.softmax(1), labels)
    numbers.update(scores[:, 0], scores[:, 1])
    images = torch.rand(2, 3, 24, 24).to(device)
    similarity.update(images, (images * 0.9).clamp(0, 1))
for name, value in (classes.compute() | numbers.compute()).items():
    print(f"{name}:", value.tolist())
print("SSIM:", similarity.compute().item())
print("device:", value.device.type)
