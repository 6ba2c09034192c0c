# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile: fake tensors, captured graphs, autograd in them, and Inductor."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from openreg_conformance.case import Suite

_suite = Suite(__name__)
case, cases = _suite.case, _suite.cases

# These cases come first, because after the first use of Inductor FakeTensorMode treats
# the CPU like other devices.

aten = torch.ops.aten
HALF = torch.bfloat16
IMAGES = torch.rand(2, 4, 6, 6)
KERNELS = torch.rand(8, 4, 3, 3)
BAGS = [torch.rand(10, 3), torch.arange(6), torch.tensor([0, 2, 4])]


def convolve(x, weight):
    sizes = [1, 1], [1, 1], [1, 1], False, [0, 0], 1
    y = aten.convolution(x, weight, None, *sizes)
    masks = [True, True, True]
    back = aten.convolution_backward(torch.ones_like(y), x, weight, [8], *sizes, masks)
    return y, back


def normalize(training):
    def call(x, *statistics):
        return aten._native_batch_norm_legit(x, *statistics, training, 0.1, 1e-5)

    return call


def layer_norm(x, weight=None):
    return aten.native_layer_norm(x, [6], weight, weight, 1e-5)


def bag(mode):
    return lambda *tensors: aten._embedding_bag(*tensors, False, mode)


def statistics(dtype):
    return [torch.ones(4, dtype=dtype) for _ in range(4)]


def rnn(operator, biases):
    def call(x, *weights):
        state = x.new_zeros(1, 6, 5)
        if operator is aten.lstm:
            state = [state, state]
        rest = 1, 0.0, True, False, False
        return operator(x, state, list(weights), biases, *rest)

    return call


def gates(count, biases):
    made = [torch.rand(5 * count, 6), torch.rand(5 * count, 5)]
    return made + [torch.rand(5 * count) for _ in range(2)] * biases


def last(x):
    return x.to(memory_format=torch.channels_last)


# Operators with results that only a backward pass reads, which torch.compile keeps:
# functions of PyTorch's database hide them.
OPERATORS = {
    "convolution": (convolve, [IMAGES, KERNELS]),
    "convolution_of_channels_last": (convolve, [last(IMAGES), KERNELS]),
    "convolution_by_channels_last": (convolve, [IMAGES, last(KERNELS)]),
    "batch_norm_in_training": (normalize(True), [IMAGES, *statistics(torch.float32)]),
    "batch_norm_in_evaluation": (
        normalize(False),
        [IMAGES, *statistics(torch.float32)],
    ),
    "batch_norm_in_bfloat16": (normalize(True), [IMAGES.to(HALF), *statistics(HALF)]),
    "layer_norm": (layer_norm, [IMAGES]),
    "layer_norm_in_bfloat16": (
        layer_norm,
        [IMAGES.to(HALF), torch.ones(6, dtype=HALF)],
    ),
    "layer_norm_in_bfloat16_and_float32": (
        layer_norm,
        [IMAGES.to(HALF), torch.ones(6)],
    ),
    "group_norm_in_bfloat16": (
        lambda x, w: aten.native_group_norm(x, w, w, 2, 4, 36, 2, 1e-5),
        [IMAGES.to(HALF), torch.ones(4, dtype=HALF)],
    ),
    "rms_norm_in_bfloat16": (
        lambda x, w: aten._fused_rms_norm(x, [6], w, 1e-5),
        [IMAGES.to(HALF), torch.ones(6, dtype=HALF)],
    ),
    "embedding_bag_of_sums": (bag(0), BAGS),
    "embedding_bag_of_means": (bag(1), BAGS),
    "embedding_bag_of_maxima": (bag(2), BAGS),
    "log_sigmoid": (lambda x: aten.log_sigmoid_forward(x), [IMAGES]),
    "dropout": (lambda x: aten.native_dropout(x, 0.5, True), [IMAGES]),
    "attention": (
        lambda q: aten._scaled_dot_product_flash_attention_for_cpu(q, q, q),
        [IMAGES.transpose(1, 2)],
    ),
    "lstm": (rnn(aten.lstm, True), [IMAGES[0], *gates(4, True)]),
    "lstm_without_biases": (rnn(aten.lstm, False), [IMAGES[0], *gates(4, False)]),
    "gru": (rnn(aten.gru, True), [IMAGES[0], *gates(3, True)]),
    "gru_without_biases": (rnn(aten.gru, False), [IMAGES[0], *gates(3, False)]),
}


def looks(call, arguments):
    try:
        made = pytree.tree_leaves(call(*arguments))
    except Exception as error:
        return {"exception": type(error).__name__}
    found = {"results": len(made)}
    for i, x in enumerate(made):
        if isinstance(x, torch.Tensor):
            found[f"device of {i}"] = x.device.type
            found[f"dtype of {i}"] = x.dtype
            found[f"layout of {i}"] = x.layout
            found[f"size of {i}"] = tuple(x.shape)
            found[f"stride of {i}"] = x.stride()
            found[f"storage offset of {i}"] = x.storage_offset()
    return found


def differences(operator, device):
    call, arguments = OPERATORS[operator]
    real = [torch.empty_strided(x.shape, x.stride(), dtype=x.dtype) for x in arguments]
    real = [new.copy_(x).to(device) for new, x in zip(real, arguments)]
    mode = FakeTensorMode()
    fake = [mode.from_tensor(x) for x in real]
    with mode:
        fake = looks(call, fake)
    real = looks(call, real)
    return {
        name: f"fake {fake.get(name)}, real {real.get(name)}"
        for name in fake | real
        if fake.get(name) != real.get(name)
    }


@case(
    "fake",
    subject="results that backward passes read",
    level="sample",
    each=[(name,) for name in OPERATORS],
)
def fake_results_are_like_real_ones(device, operator):
    """FakeTensorMode predicts the metadata of all results of an operator."""
    found, known = differences(operator, device), differences(operator, "cpu")
    # Differences that also exist on the CPU belong to PyTorch.
    found = {name: told for name, told in found.items() if name not in known}
    assert not found, found


def network(x, weight):
    y = torch.nn.functional.gelu(x @ weight) + x.sum(1, keepdim=True)
    return y.softmax(1) * torch.ones_like(y).cumsum(0)


def compare(device, backend, **options):
    torch._dynamo.reset()
    torch.manual_seed(0)
    x, weight = torch.randn(8, 6), torch.randn(6, 6)
    compiled = torch.compile(network, backend=backend, fullgraph=True, **options)
    found = []
    for where, call in (("cpu", network), (device, compiled)):
        mine = weight.detach().clone().to(where).requires_grad_()
        result = call(x.to(where), mine)
        result.square().sum().backward()
        found.append((result.detach().cpu(), mine.grad.cpu()))
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)


@case("dynamo")
def graphs_are_captured(device):
    """torch.compile with the backend "eager" captures a network in one graph."""
    compare(device, "eager")


@case("dynamo", subject="AOT autograd", level="sample")
def graphs_have_backward_passes(device):
    """torch.compile with the backend "aot_eager" traces forward and backward."""
    compare(device, "aot_eager")


@case("inductor", level="sample")
def inductor_compiles(device):
    """torch.compile with Inductor gives the CPU's values and gradients."""
    compare(device, "inductor")


@case("dynamo", subject="sizes that change", level="sample", users=0.2)
def sizes_may_change(device):
    """A graph with dynamic sizes works for several sizes."""
    torch._dynamo.reset()
    call = torch.compile(lambda x: (x * 2).sum(0), backend="aot_eager", dynamic=True)
    for size in (3, 5, 8):
        assert call(torch.ones(size, 2, device=device)).tolist() == [2 * size] * 2
