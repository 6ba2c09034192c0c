# SPDX-License-Identifier: BSD-3-Clause
"""skorch: a network as a scikit-learn classifier, also in a grid search."""

from __future__ import annotations

import pickle
import sys

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier
from torch import nn

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.set_num_threads(1)
images, digits = load_digits(return_X_y=True)
images = (images[:512] / 16).astype("float32")
digits = digits[:512]


class Net(nn.Module):
    """A network with one hidden layer of the given width."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(
            nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Takes (batch, 64), returns scores (batch, 10)."""
        return self.layers(x)


# [docs: device]
classifier = NeuralNetClassifier(
    Net,
    criterion=nn.CrossEntropyLoss,
    device=device,
    max_epochs=5,
    lr=0.5,
    iterator_train__shuffle=False,
    verbose=0,
)
# [docs: end]
classifier.fit(images, digits)
print("losses:", [float(loss) for loss in classifier.history[:, "train_loss"]])
print("score:", classifier.score(images, digits))
again = pickle.loads(pickle.dumps(classifier))
print("pickled:", (again.predict(images) == classifier.predict(images)).all())
search = GridSearchCV(classifier, {"module__width": [4, 16]}, cv=2, refit=False)
search.fit(images, digits)
print("search:", search.cv_results_["mean_test_score"].tolist())
print("device:", next(again.module_.parameters()).device.type)
