# SPDX-License-Identifier: BSD-3-Clause
"""Recurrent layers and cells compute like the CPU, forward and backward."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

Both = Callable[..., Any]
LAYERS: dict[str, Callable[..., nn.RNNBase]] = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "rnn_tanh": nn.RNN,
    "rnn_relu": lambda *sizes, **options: nn.RNN(
        *sizes, nonlinearity="relu", **options
    ),
}
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "batch_first": {"batch_first": True},
    "no_bias": {"bias": False},
    "deep_both_ways": {"num_layers": 2, "bidirectional": True},
    "dropout": {"num_layers": 3, "dropout": 0.5},
    "all": {
        "num_layers": 2,
        "bidirectional": True,
        "dropout": 0.25,
        "batch_first": True,
        "bias": False,
    },
}
LENGTHS = [3, 6, 1, 4]


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: each.detach().clone() for name, each in module.named_parameters()}


def initial(module: nn.RNNBase, dtype: torch.dtype) -> list[Tensor]:
    """Random initial states for a batch of four."""
    directions = 2 if module.bidirectional else 1
    sizes = [module.proj_size or module.hidden_size]
    if isinstance(module, nn.LSTM):
        sizes.append(module.hidden_size)
    layers = module.num_layers * directions
    return [torch.randn(layers, 4, size).to(dtype) for size in sizes]


def train(
    module: nn.RNNBase, packed: bool, x: Tensor, states: list[Tensor], weights: Any
) -> list[Tensor]:
    """Returns the results, then the gradients of everything."""
    torch.manual_seed(7)  # for dropout
    leaves = [each.clone().requires_grad_() for each in (x, *states, *weights.values())]
    first, rest = leaves[0], leaves[1:]
    hx = rest[: len(states)]
    named = dict(zip(weights, rest[len(states) :], strict=True))
    given: Tensor | PackedSequence = first
    if packed:
        given = pack_padded_sequence(
            first, LENGTHS, batch_first=module.batch_first, enforce_sorted=False
        )
    state = tuple(hx) if isinstance(module, nn.LSTM) else hx[0]
    output, last = functional_call(module, named, (given, state))
    results = [output.data if packed else output]
    results += last if isinstance(last, tuple) else [last]
    loss = sum((each.float().square().sum() for each in results), torch.zeros(()))
    return [each.detach() for each in results] + list(torch.autograd.grad(loss, leaves))


@pytest.fixture(autouse=True)
def quiet_about_projections() -> Any:
    """The CPU warns that it does not use oneDNN for an LSTM with projections."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "LSTM with projections is not supported")
        yield


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("kind", LAYERS)
def test_layer_has_the_results_and_gradients_of_the_cpu(
    both: Both, kind: str, dtype: torch.dtype, options: dict[str, Any], packed: bool
) -> None:
    module = LAYERS[kind](5, 7, **options).to(dtype)
    shape = (4, 6, 5) if module.batch_first else (6, 4, 5)
    x, states = torch.randn(shape).to(dtype), initial(module, dtype)
    both(lambda *args: train(module, packed, *args), x, states, weights_of(module))


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_lstm_with_projections_has_the_results_of_the_cpu(
    both: Both, dtype: torch.dtype, packed: bool
) -> None:
    module = nn.LSTM(5, 7, num_layers=2, bidirectional=True, proj_size=3).to(dtype)
    x, states = torch.randn(6, 4, 5).to(dtype), initial(module, dtype)
    both(lambda *args: train(module, packed, *args), x, states, weights_of(module))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("size", [(1, 1, 1), (9, 3, 33), (20, 16, 64)])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("kind", LAYERS)
def test_inference_has_the_results_of_the_cpu(
    both: Both, kind: str, dtype: torch.dtype, size: tuple[int, ...], mode: Any
) -> None:
    steps, batch, width = size
    module = LAYERS[kind](width, width, num_layers=2).to(dtype)

    def run(x: Tensor, weights: dict[str, Tensor]) -> Any:
        with mode():
            return functional_call(module, weights, (x,))

    both(run, torch.randn(steps, batch, width).to(dtype), weights_of(module))


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no_bias"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cell_has_the_results_and_gradients_of_the_cpu(
    both: Both, kind: type[nn.RNNCellBase], dtype: torch.dtype, bias: bool
) -> None:
    module = kind(5, 7, bias=bias).to(dtype)
    count = 2 if kind is nn.LSTMCell else 1

    def run(x: Tensor, states: list[Tensor], weights: dict[str, Tensor]) -> Any:
        every = (x, *states, *weights.values())
        leaves = [each.clone().requires_grad_() for each in every]
        named = dict(zip(weights, leaves[1 + count :], strict=True))
        state = tuple(leaves[1:3]) if count == 2 else leaves[1]
        result = functional_call(module, named, (leaves[0], state))
        results = result if count == 2 else (result,)
        loss = sum((each.square().sum() for each in results), torch.zeros(()))
        gradients = torch.autograd.grad(loss, leaves)
        return [each.detach() for each in results], gradients

    states = [torch.randn(4, 7).to(dtype) for _ in range(count)]
    both(run, torch.randn(4, 5).to(dtype), states, weights_of(module))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kind", LAYERS)
def test_second_derivatives_are_those_of_the_cpu(
    both: Both, kind: str, dtype: torch.dtype
) -> None:
    module = LAYERS[kind](3, 4, bidirectional=True).to(dtype)

    def run(x: Tensor, weights: dict[str, Tensor]) -> Any:
        leaves = [each.clone().requires_grad_() for each in (x, *weights.values())]
        named = dict(zip(weights, leaves[1:], strict=True))
        output, _ = functional_call(module, named, (leaves[0],))
        first = torch.autograd.grad(output.pow(3).sum(), leaves, create_graph=True)
        total = sum((each.square().sum() for each in first), torch.zeros(()))
        return torch.autograd.grad(total, leaves)

    both(run, torch.randn(5, 2, 3, dtype=dtype), weights_of(module))


# PyTorch scripts its decompositions at the first use of forward mode.
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize("kind", ["gru", "rnn_tanh"])
def test_function_transforms_give_the_numbers_of_the_cpu(both: Both, kind: str) -> None:
    module = LAYERS[kind](3, 4)

    def jvp(x: Tensor, tangent: Tensor, weights: dict[str, Tensor]) -> Any:
        def output(x: Tensor) -> Tensor:
            result: Tensor = functional_call(module, weights, (x,))[0]
            return result

        return torch.func.jvp(output, (x,), (tangent,))

    x, tangent = torch.randn(2, 5, 2, 3)
    both(jvp, x, tangent, weights_of(module))

    def gradients(x: Tensor, weights: dict[str, Tensor]) -> Any:
        def loss(weights: dict[str, Tensor], x: Tensor) -> Tensor:
            total: Tensor = functional_call(module, weights, (x,))[0].square().sum()
            return total

        return torch.func.grad(loss)(weights, x)

    both(gradients, torch.randn(5, 2, 3), weights_of(module))


@pytest.mark.parametrize("kind", LAYERS)
def test_empty_batch_has_the_results_of_the_cpu(both: Both, kind: str) -> None:
    module = LAYERS[kind](3, 4)
    with torch.no_grad():
        both(
            lambda x, weights: functional_call(module, weights, (x,)),
            torch.randn(5, 0, 3),
            weights_of(module),
        )


def test_lstm_runs_in_onednn_where_the_cpu_does(device: str) -> None:
    def made_by(place: str, **options: Any) -> str:
        module = nn.LSTM(5, 4, **options).to(place)
        output, _ = module(torch.ones(3, 2, 5, device=place))
        name: str = output.grad_fn.name()
        return name

    assert made_by("cpu") == made_by(device) == "MkldnnRnnLayerBackward0"
    assert made_by(device, proj_size=2) == "StackBackward0"
    torch._C._set_mkldnn_enabled(False)
    try:
        assert made_by("cpu") == made_by(device) == "StackBackward0"
    finally:
        torch._C._set_mkldnn_enabled(True)


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True)], ids=str)
def test_results_known_in_one_grad_mode_are_not_taken_for_the_other(
    both: Both, first: bool, second: bool
) -> None:
    """The cached results of a layer in one mode are not used for the other mode."""
    module = nn.LSTM(11, 13, num_layers=2)
    weights, x = weights_of(module), torch.randn(4, 3, 11)

    def run(x: Tensor, weights: dict[str, Tensor]) -> Any:
        results = []
        for grad, _ in itertools.product((first, second), range(2)):
            leaf = x.clone().requires_grad_()
            with torch.set_grad_enabled(grad):
                output, _ = functional_call(module, weights, (leaf,))
            if grad:
                results += torch.autograd.grad(output.sum(), leaf)
            results.append(output.detach())
        return results

    both(run, x, weights)


WRONG: dict[str, Callable[[str], Any]] = {
    "lstm_states": lambda d: torch.lstm(
        torch.ones(2, 1, 3, device=d), [], [], True, 1, 0.0, False, False, False
    ),
    "no_steps": lambda d: nn.GRU(3, 4).to(d)(torch.ones(0, 1, 3, device=d)),
    "parameters": lambda d: torch.gru(
        torch.ones(2, 1, 3, device=d),
        torch.ones(1, 1, 4, device=d),
        [torch.ones(12, 3, device=d)],
        True,
        1,
        0.0,
        False,
        False,
        False,
    ),
    "cell_input": lambda d: torch.lstm_cell(
        torch.ones(1, 2, device=d),
        [torch.ones(1, 4, device=d)] * 2,
        torch.ones(16, 3, device=d),
        torch.ones(16, 4, device=d),
    ),
    "cell_weight": lambda d: torch.gru_cell(
        torch.ones(1, 3, device=d),
        torch.ones(1, 4, device=d),
        torch.ones(11, 3, device=d),
        torch.ones(12, 4, device=d),
    ),
    "cell_batch": lambda d: torch.gru_cell(
        torch.ones(1, 3, device=d),
        torch.ones(2, 4, device=d),
        torch.ones(12, 3, device=d),
        torch.ones(12, 4, device=d),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_refused_in_the_words_of_the_cpu(
    device: str, name: str
) -> None:
    def message(where: str) -> str:
        with pytest.raises(RuntimeError) as raised:
            WRONG[name](where)
        return str(raised.value)

    assert message(device) == message("cpu")


def test_batch_sizes_on_the_device_are_refused(device: str) -> None:
    data, hx = torch.ones(3, 2, device=device), torch.ones(1, 2, 4, device=device)
    sizes = torch.tensor([2, 1], device=device)
    weights = list(nn.GRU(2, 4).to(device).parameters())
    with pytest.raises(RuntimeError, match="batch_sizes must be an int64 CPU tensor"):
        torch.gru(data, sizes, hx, weights, True, 1, 0.0, False, False)


FUSED = {
    "lstm": (torch.lstm_cell, torch.ops.aten._thnn_fused_lstm_cell, 4),
    "gru": (torch.gru_cell, torch.ops.aten._thnn_fused_gru_cell, 3),
}


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no_bias"])
@pytest.mark.parametrize("kind", FUSED)
def test_fused_cell_has_the_numbers_of_the_cpu_cell(
    device: str, kind: str, bias: bool
) -> None:
    cell, fused, gates = FUSED[kind]
    x, h, c = torch.randn(4, 5), torch.randn(4, 6), torch.randn(4, 6)
    weights = torch.randn(gates * 6, 5), torch.randn(gates * 6, 6)
    biases = tuple(torch.randn(2, gates * 6)) if bias else ()

    def run(place: str) -> tuple[list[Tensor], list[Tensor]]:
        given = (x, h, c, *weights, *biases)
        leaves = [each.to(place, copy=True).requires_grad_() for each in given]
        x_, h_, c_, w_ih, w_hh, *b = leaves
        if place == "cpu":
            state = [h_, c_] if kind == "lstm" else h_
            result = cell(x_, state, w_ih, w_hh, *b)
            results = list(result) if kind == "lstm" else [result]
        else:
            parts = x_ @ w_ih.t(), h_ @ w_hh.t()
            *results, _ = fused(*parts, c_ if kind == "lstm" else h_, *b)
        loss = sum((each.square().sum() for each in results), torch.zeros(()))
        gradients = torch.autograd.grad(loss, leaves, materialize_grads=True)
        return (
            [each.detach().cpu() for each in results],
            [each.cpu() for each in gradients],
        )

    (results, gradients), (wanted, expected) = run(device), run("cpu")
    torch.testing.assert_close(results, wanted)
    torch.testing.assert_close(gradients, expected, rtol=1e-5, atol=1e-5)
