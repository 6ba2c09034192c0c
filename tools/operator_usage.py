# SPDX-License-Identifier: BSD-3-Clause
"""Counts which models call which operators, for the ranking of openreg-conformance.

    python tools/operator_usage.py          # write usage_table.py
    python tools/operator_usage.py --check  # fail if the file is not current

The models are small and of common kinds, and each runs one training step. An operator
of PyTorch's database counts if the model calls its function, or if the dispatcher calls
its ATen operator, forward or backward. The share of an operator is the share of models.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from pages import main
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode
from workspace import ROOT

FILE = ROOT / "packages/openreg-conformance/src/openreg_conformance/usage_table.py"
MODELS: dict[str, Callable[[], tuple[nn.Module, Tensor]]] = {}


def model(function: Callable[[], tuple[nn.Module, Tensor]]) -> Any:
    """Registers a function that builds a model and its loss."""
    MODELS[function.__name__] = function
    return function


def _step(
    module: nn.Module, loss: Tensor, optimizer: type[Any], **options: Any
) -> None:
    made = optimizer(module.parameters(), **options)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
    made.step()
    made.zero_grad()


@model
def perceptron() -> tuple[nn.Module, Tensor]:
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
    return net, F.cross_entropy(net(torch.randn(4, 8)), torch.arange(4) % 3)


@model
def convolutional_network() -> tuple[nn.Module, Tensor]:
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 5),
    )
    return net, F.cross_entropy(net(torch.randn(2, 1, 8, 8)), torch.arange(2))


class Block(nn.Module):
    """A residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.two = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(4), nn.BatchNorm2d(4)])

    def forward(self, x: Tensor) -> Tensor:
        """Adds two convolutions."""
        y = F.relu(self.norms[0](self.one(x)), inplace=True)
        return F.relu(x + self.norms[1](self.two(y)))


@model
def residual_network() -> tuple[nn.Module, Tensor]:
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    net = nn.Sequential(nn.Conv2d(3, 4, 3), Block(), Block(), *head)
    images = (torch.rand(2, 3, 8, 8) - 0.5) / 0.25
    loss = F.cross_entropy(net(images), torch.arange(2), label_smoothing=0.1)
    return net, loss


class Up(nn.Module):
    """A segmentation network: down, up, and a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, 4, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(4, 4, 2, stride=2)
        self.last = nn.Conv2d(9, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Returns scores for each pixel."""
        y = F.leaky_relu(self.down(x))
        z = F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
        return self.last(torch.cat([x, z, self.up(y)], 1))


@model
def segmentation() -> tuple[nn.Module, Tensor]:
    net = Up()
    scores = net(torch.randn(2, 1, 8, 8))
    target = torch.randint(2, (2, 8, 8))
    dice = (scores.softmax(1)[:, 1] * target).sum() / (target.sum() + 1)
    return net, F.cross_entropy(scores, target) - dice


class Attention(nn.Module):
    """Attention and a perceptron, with a norm before each."""

    def __init__(self, causal: bool, fused: bool = True) -> None:
        super().__init__()
        self.causal, self.fused = causal, fused
        self.norm, self.other = nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.mlp = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8))

    def forward(self, x: Tensor) -> Tensor:
        """Applies attention and the perceptron, each with a residual connection."""
        batch, length, width = x.shape
        parts = self.qkv(self.norm(x)).chunk(3, -1)
        heads = [p.view(batch, length, 2, width // 2).transpose(1, 2) for p in parts]
        if self.fused:
            y = F.scaled_dot_product_attention(*heads, is_causal=self.causal)
        else:
            scores = heads[0] @ heads[1].transpose(-2, -1) / (width // 2) ** 0.5
            if self.causal:
                mask = torch.tril(torch.ones(length, length)) == 0
                scores = scores.masked_fill(mask, float("-inf"))
            y = F.dropout(scores.softmax(-1), 0.1) @ heads[2]
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.other(x))


class Language(nn.Module):
    """A language model with one matrix for both embeddings."""

    def __init__(self, *blocks: nn.Module) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 8), nn.Embedding(16, 8)
        self.blocks, self.norm = nn.Sequential(*blocks), nn.LayerNorm(8)

    def forward(self, x: Tensor) -> Tensor:
        """Returns scores of the next token."""
        y = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        return self.norm(self.blocks(F.dropout(y, 0.1))) @ self.tokens.weight.t()


def _next_token(net: nn.Module) -> Tensor:
    x = torch.randint(20, (2, 7))
    return F.cross_entropy(net(x[:, :-1]).flatten(0, 1), x[:, 1:].reshape(-1))


@model
def language_model() -> tuple[nn.Module, Tensor]:
    net = Language(Attention(True), Attention(True))
    return net, _next_token(net)


@model
def language_model_with_plain_attention() -> tuple[nn.Module, Tensor]:
    net = Language(Attention(True, fused=False))
    return net, _next_token(net)


class Rotary(nn.Module):
    """A block with rotary embeddings, RMS norms and gated units."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.norm = nn.Linear(8, 24, bias=False), nn.RMSNorm(8)
        self.gate, self.up, self.down = (nn.Linear(8, 8, bias=False) for _ in range(3))

    def _turn(self, x: Tensor) -> Tensor:
        angles = torch.outer(
            torch.arange(x.shape[-2]), 1 / 100 ** torch.arange(0, 1, 0.5)
        )
        angles = torch.cat([angles, angles], -1)
        one, two = x.chunk(2, -1)
        return x * angles.cos() + torch.cat([-two, one], -1) * angles.sin()

    def forward(self, x: Tensor) -> Tensor:
        """Applies attention and the perceptron, each with a residual connection."""
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(
            self._turn(q), self._turn(k), v, is_causal=True
        )
        x = x + y.transpose(1, 2).flatten(2)
        return x + self.down(F.silu(self.gate(x)) * self.up(x))


@model
def language_model_with_rotary_embeddings() -> tuple[nn.Module, Tensor]:
    net = Language(Rotary())
    return net, _next_token(net)


@model
def masked_language_model() -> tuple[nn.Module, Tensor]:
    net = Language(Attention(False))
    x = torch.randint(20, (2, 6))
    labels = torch.where(torch.rand(2, 6) < 0.5, x, -100)
    labels[0, 0] = x[0, 0]
    return net, F.cross_entropy(net(x).view(-1, 20), labels.view(-1), ignore_index=-100)


@model
def vision_transformer() -> tuple[nn.Module, Tensor]:
    patch, block, head = nn.Conv2d(3, 8, 4, 4), Attention(False), nn.Linear(8, 3)
    first = nn.Parameter(torch.zeros(1, 1, 8))
    net = nn.ModuleList([patch, block, head])
    net.register_parameter("first", first)
    x = patch(torch.randn(2, 3, 8, 8)).flatten(2).transpose(1, 2)
    x = block(torch.cat([first.expand(2, -1, -1), x], 1))
    return net, F.cross_entropy(head(x[:, 0]), torch.arange(2))


@model
def translation() -> tuple[nn.Module, Tensor]:
    net = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    y = net(torch.randn(2, 5, 8), torch.randn(2, 4, 8), tgt_mask=mask)
    return net, F.mse_loss(y, torch.randn(2, 4, 8))


class Recurrent(nn.Module):
    """An embedding, a recurrent layer and an output layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.tokens, self.layer, self.out = nn.Embedding(9, 8), layer, nn.Linear(8, 9)

    def forward(self, x: Tensor) -> Tensor:
        """Returns scores of the next token."""
        return self.out(self.layer(self.tokens(x))[0])


@model
def lstm() -> tuple[nn.Module, Tensor]:
    net = Recurrent(nn.LSTM(8, 8, 2, batch_first=True))
    x = torch.randint(9, (2, 5))
    return net, F.cross_entropy(net(x).transpose(1, 2), x)


@model
def gru_on_packed_sequences() -> tuple[nn.Module, Tensor]:
    net = nn.GRU(3, 4)
    packed = nn.utils.rnn.pack_sequence([torch.randn(3, 3), torch.randn(2, 3)])
    y, _ = nn.utils.rnn.pad_packed_sequence(net(packed)[0])
    return net, y.square().mean()


@model
def variational_autoencoder() -> tuple[nn.Module, Tensor]:
    encode, decode = nn.Linear(8, 4), nn.Linear(2, 8)
    x = torch.rand(3, 8)
    mean, deviation = encode(x).chunk(2, 1)
    z = mean + torch.randn_like(mean) * (0.5 * deviation).exp()
    loss = F.binary_cross_entropy(torch.sigmoid(decode(z)), x, reduction="sum")
    divergence = -0.5 * (1 + deviation - mean.pow(2) - deviation.exp()).sum()
    return nn.ModuleList([encode, decode]), loss + divergence


@model
def adversarial_network() -> tuple[nn.Module, Tensor]:
    make = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 6), nn.Tanh()
    )
    tell = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    scores = tell(make(torch.randn(4, 4))), tell(torch.randn(4, 6))
    one, zero = torch.ones(4, 1), torch.zeros(4, 1)
    loss = F.binary_cross_entropy_with_logits(scores[0], zero)
    loss = loss + F.binary_cross_entropy_with_logits(scores[1], one)
    return nn.ModuleList([make, tell]), loss


@model
def diffusion() -> tuple[nn.Module, Tensor]:
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.GroupNorm(2, 8),
        nn.SiLU(),
        nn.Conv2d(8, 3, 3, padding=1),
    )
    x, noise = torch.randn(2, 3, 6, 6), torch.randn(2, 3, 6, 6)
    alphas = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 10), 0)
    a = alphas[torch.randint(10, (2,))].view(-1, 1, 1, 1)
    mixed = a.sqrt() * x + (1 - a).sqrt() * noise
    return net, F.mse_loss(net(mixed), noise)


@model
def recommendation() -> tuple[nn.Module, Tensor]:
    bags = nn.ModuleList([nn.EmbeddingBag(10, 4, mode="sum") for _ in range(3)])
    dense, top = nn.Linear(5, 4), nn.Linear(10, 1)
    parts = [bag(torch.randint(10, (2, 3))) for bag in bags]
    rows = torch.stack([F.relu(dense(torch.randn(2, 5))), *parts], 1)
    pairs = torch.bmm(rows, rows.transpose(1, 2))
    i, j = torch.tril_indices(4, 4, -1)
    scores = top(torch.cat([pairs[:, i, j], rows[:, 0]], 1)).squeeze(1)
    loss = F.binary_cross_entropy_with_logits(scores, torch.ones(2))
    return nn.ModuleList([bags, dense, top]), loss


@model
def graph_network() -> tuple[nn.Module, Tensor]:
    layer = nn.Linear(4, 4)
    x, edges = torch.randn(5, 4), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    sums = torch.zeros(5, 4).index_add_(0, edges[1], layer(x).index_select(0, edges[0]))
    degrees = torch.zeros(5).scatter_add_(0, edges[1], torch.ones(4)).clamp(min=1)
    return layer, F.nll_loss(
        (sums / degrees[:, None]).log_softmax(1), torch.arange(5) % 4
    )


@model
def mixture_of_experts() -> tuple[nn.Module, Tensor]:
    gate = nn.Linear(4, 3)
    experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
    x = torch.randn(6, 4)
    weights, chosen = gate(x).softmax(-1).topk(2)
    weights = weights / weights.sum(-1, keepdim=True)
    y = torch.zeros_like(x)
    for i, expert in enumerate(experts):
        row, place = torch.where(chosen == i)
        y.index_add_(0, row, expert(x[row]) * weights[row, place, None])
    return nn.ModuleList([gate, experts]), y.square().mean()


@model
def reinforcement() -> tuple[nn.Module, Tensor]:
    policy, value = nn.Linear(4, 2), nn.Linear(4, 1)
    states, returns = torch.randn(5, 4), torch.randn(5)
    chosen = torch.distributions.Categorical(logits=policy(states))
    actions = chosen.sample()
    gains = returns - value(states).squeeze(-1)
    ratio = (chosen.log_prob(actions) - chosen.log_prob(actions).detach()).exp()
    clipped = torch.min(ratio * gains, ratio.clamp(0.8, 1.2) * gains)
    loss = -clipped.mean() + F.smooth_l1_loss(value(states).squeeze(-1), returns)
    return nn.ModuleList([policy, value]), loss - 0.01 * chosen.entropy().mean()


@model
def contrastive() -> tuple[nn.Module, Tensor]:
    one, two = nn.Linear(6, 4), nn.Linear(5, 4)
    a = F.normalize(one(torch.randn(3, 6)), dim=-1)
    b = F.normalize(two(torch.randn(3, 5)), dim=-1)
    scores = a @ b.t() * 10
    loss = F.cross_entropy(scores, torch.arange(3)) + F.cross_entropy(
        scores.t(), torch.arange(3)
    )
    return nn.ModuleList([one, two]), loss / 2 + F.triplet_margin_loss(a, b, b.flip(0))


@model
def speech() -> tuple[nn.Module, Tensor]:
    net = nn.Conv1d(9, 6, 3, padding=1)
    waves = torch.randn(2, 160)
    spectra = torch.stft(waves, 16, window=torch.hann_window(16), return_complex=True)
    scores = net((spectra.abs() + 1e-6).log()).log_softmax(1).permute(2, 0, 1)
    lengths = torch.full((2,), scores.shape[0]), torch.full((2,), 3)
    return net, F.ctc_loss(scores, torch.randint(1, 6, (2, 3)), *lengths)


@model
def detection() -> tuple[nn.Module, Tensor]:
    net = nn.Conv2d(3, 6, 3, padding=1)
    y = net(torch.randn(1, 3, 4, 4)).permute(0, 2, 3, 1).reshape(-1, 6)
    boxes, target = y[:, :4].sigmoid(), torch.rand(16, 4)
    best = torch.maximum(boxes[:, :2], target[:, :2])
    least = torch.minimum(boxes[:, 2:], target[:, 2:])
    overlap = (least - best).clamp(min=0).prod(1)
    keep = y[:, 4].detach().argsort(descending=True)[:5]
    loss = F.huber_loss(boxes[keep], target[keep]) - overlap.mean()
    return net, loss + F.binary_cross_entropy_with_logits(
        y[:, 4], (overlap > 0).float()
    )


@model
def low_rank_adaptation() -> tuple[nn.Module, Tensor]:
    base = nn.Linear(6, 6).requires_grad_(False)
    one, two = nn.Linear(6, 2, bias=False), nn.Linear(2, 6, bias=False)
    x = torch.randn(3, 6)
    loss = F.l1_loss(base(x) + two(one(F.dropout(x, 0.05))) * 2, x)
    return nn.ModuleList([one, two]), loss


@model
def gaussian_process() -> tuple[nn.Module, Tensor]:
    scale = nn.Linear(1, 1)
    x, y = torch.linspace(0, 1, 6)[:, None], torch.randn(6, 1)
    distances = torch.cdist(scale(x), scale(x)).square()
    factor = torch.linalg.cholesky((-distances).exp() + 0.1 * torch.eye(6))
    solved = torch.cholesky_solve(y, factor)
    return scale, (y * solved).sum() + 2 * factor.diagonal().log().sum()


class _Functions(TorchFunctionMode):
    """Records the functions that are called."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.seen.add(func)
        return func(*args, **(kwargs or {}))


class _Operators(TorchDispatchMode):
    """Records the ATen operators that are dispatched."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.seen.add(func._schema.name.removeprefix("aten::"))
        return func(*args, **(kwargs or {}))


def called(make: Callable[[], tuple[nn.Module, Tensor]]) -> set[str]:
    """Returns the names of the database entries that one training step calls."""
    from torch.testing._internal.common_methods_invocations import op_db

    torch.manual_seed(0)
    with _Functions() as functions, _Operators() as operators:
        module, loss = make()
        _step(module, loss, torch.optim.AdamW, lr=1e-3)
    named = {str(resolve_name(each)).rpartition(".")[2] for each in functions.seen}
    found = set()
    for op in op_db:
        aten = (op.aten_name or op.name).removeprefix("aten::")
        names = {aten, f"{aten}_"}
        if (
            op.op in functions.seen
            or names & operators.seen
            or (op.name in named and "." not in op.name and not op.variant_test_name)
        ):
            found.add(op.full_name)
    return found


def table() -> str:
    """Returns the text of the module."""
    counts: dict[str, int] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for make in MODELS.values():
            for name in called(make):
                counts[name] = counts.get(name, 0) + 1
    rows = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    lines = [
        "# SPDX-License-Identifier: BSD-3-Clause",
        f'"""The share of {len(MODELS)} models that call an operator, forward or backward.',
        "",
        "tools/operator_usage.py of the workspace writes this file: it trains the models.",
        '"""',
        "",
        f"MODELS = {len(MODELS)}",
        "SHARES = {",
        *(f'    "{name}": {count / len(MODELS):.2f},' for name, count in rows),
        "}",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main((__doc__ or "").splitlines()[0], FILE, table))
