# SPDX-License-Identifier: BSD-3-Clause
"""Tests of records: what they hold, that they survive a file, and dry runs."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import openreg_predict
from openreg_predict import Record
from openreg_predict._analysis.works import works_of
from openreg_predict._records.record import (
    Alloc,
    Capture,
    Fork,
    Free,
    Join,
    Mark,
    Op,
    RecordFileError,
    Region,
    Replay,
    Sync,
    Wait,
)

torch.set_num_threads(1)


def names(record: Record) -> list[str]:
    return [op.call.name for op in record.ops()]


def first(record: Record, name: str) -> Op:
    return next(op for op in record.ops() if op.call.name == name)


def train(steps: int = 1, dry: bool = False) -> Record:
    """Records a training step of a small model."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    with openreg_predict.record(dry=dry) as record:
        model.to("openreg")
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(steps):
            loss = model(torch.ones(8, 16, device="openreg")).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return record


def test_an_operator_has_its_shapes_module_and_phase() -> None:
    record = train()
    forward = first(record, "addmm")
    assert forward.phase == "forward"
    assert record.modules[forward.module] == "0"
    assert forward.call.tensor("mat1").shape == (8, 16)
    assert forward.call.results[0].shape == (8, 32)
    backward = first(record, "threshold_backward")
    assert backward.phase == "backward"
    assert record.modules[backward.module] == "1"
    assert first(record, "_foreach_lerp_").phase == "optimizer"


def test_views_share_the_storage_of_their_base() -> None:
    x = torch.ones(4, 4, device="openreg")
    with openreg_predict.record() as record:
        x.t()[1:].add_(1)
    (base,) = {t.storage for op in record.ops() for t in op.call.tensors()}
    assert [op.call.is_view for op in record.ops()] == [True, True, False]
    assert base is not None


def test_storages_end_in_the_order_of_the_host() -> None:
    with openreg_predict.record() as record:
        x = torch.ones(100, device="openreg")
        y = x + 1
        del x
        z = y * 2
    life = [e for e in record.events if isinstance(e, (Alloc, Free))]
    made = [e.storage for e in life if isinstance(e, Alloc)]
    order = [(type(e).__name__, made.index(e.storage)) for e in life]
    assert order == [("Alloc", 0), ("Alloc", 1), ("Free", 0), ("Alloc", 2)]
    assert z.numel() == 100


def test_owners_are_parameters_gradients_and_optimizer() -> None:
    record = train()
    assert set(record.owners.values()) == {"parameters", "gradients", "optimizer"}
    assert list(record.owners.values()).count("parameters") == 4
    assert list(record.owners.values()).count("gradients") == 4
    assert list(record.owners.values()).count("optimizer") == 8


def test_copies_have_a_direction_and_waits_are_those_of_cuda() -> None:
    pinned = torch.ones(10).pin_memory()
    with openreg_predict.record() as record:
        one = torch.ones(10).to("openreg")
        two = pinned.to("openreg", non_blocking=True)
        (one + two).cpu()
        one.sum().item()
    copies = [
        (op.transfer, op.pinned, bool(op.wait)) for op in record.ops() if op.transfer
    ]
    assert copies == [
        ("HtoD", False, True),
        ("HtoD", True, False),
        ("DtoH", False, True),
    ]
    assert first(record, "_local_scalar_dense").wait


def test_streams_and_events_are_recorded() -> None:
    with openreg_predict.record() as record:
        x = torch.ones(10, device="openreg")
        stream = torch.openreg.Stream()
        stream.wait_stream(torch.openreg.current_stream())
        with torch.openreg.stream(stream):
            x += 1
        torch.openreg.current_stream().wait_stream(stream)
        torch.openreg.synchronize()
    assert [op.stream for op in record.ops()] == [0, 1]
    marks = [e for e in record.events if isinstance(e, Mark)]
    waits = [e for e in record.events if isinstance(e, Wait)]
    assert [(e.mark, e.stream) for e in marks] == [(0, 0), (1, 1)]
    assert [(e.mark, e.stream) for e in waits] == [(0, 1), (1, 0)]
    assert sum(isinstance(e, Sync) for e in record.events) == 1


def test_threads_of_the_program_are_recorded() -> None:
    x = torch.ones(10, device="openreg")
    with openreg_predict.record() as record:
        thread = threading.Thread(target=lambda: x + 1)
        thread.start()
        thread.join()
    assert [op.thread for op in record.ops()] == [1]
    assert [type(e) for e in record.events if isinstance(e, (Fork, Join))] == [
        Fork,
        Join,
    ]


def test_compiled_functions_are_regions_with_their_backward_pass() -> None:
    def work(x: torch.Tensor) -> torch.Tensor:
        return (x.exp() * 2).sum()

    x = torch.ones(10, device="openreg", requires_grad=True)
    compiled = torch.compile(work, backend="eager")
    with openreg_predict.record() as record:
        compiled(x).backward()
        x.grad.add_(1)
    regions = [e for e in record.events if isinstance(e, Region)]
    assert [(e.region, e.ends) for e in regions] == [(0, False), (0, True)]
    assert first(record, "exp").region == 0
    assert {op.region for op in record.ops() if op.phase == "backward"} >= {1}
    assert first(record, "add_").region == -1


def test_a_file_keeps_a_record(tmp_path: Path) -> None:
    record = train()
    record.save(tmp_path / "run.jsonl")
    again = Record.load(tmp_path / "run.jsonl")
    assert again == record


def test_a_file_that_is_no_record_raises_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("hello\n")
    with pytest.raises(RecordFileError, match="text is not a saved record"):
        Record.load(path)


def test_a_record_of_an_older_format_raises_an_error(tmp_path: Path) -> None:
    path = tmp_path / "old"
    train().save(path)
    text = path.read_text()
    current = '"openreg_predict_record":3'
    assert text.count(current) == 1
    path.write_text(text.replace(current, '"openreg_predict_record":2'))
    with pytest.raises(RecordFileError, match="has format 2; this version reads 3"):
        Record.load(path)


def test_recordings_do_not_nest() -> None:
    with (
        openreg_predict.record(),
        pytest.raises(RuntimeError, match="another recording is active"),
        openreg_predict.record(),
    ):
        pass


def test_nothing_is_recorded_after_the_block() -> None:
    with openreg_predict.record() as record:
        x = torch.ones(10, device="openreg")
    count = len(record.events)
    x + 1
    torch.openreg.synchronize()
    assert len(record.events) == count


def test_results_are_the_same_while_recording() -> None:
    x = torch.arange(10.0, device="openreg")
    expected = (x.exp() @ x).cpu()
    with openreg_predict.record():
        found = (x.exp() @ x).cpu()
    assert found.equal(expected)


# ---- dry runs


def test_a_dry_run_gives_the_operators_of_a_real_one() -> None:
    def plain(record: Record) -> list[str]:
        # Fake parameters are detached once more when a module moves them.
        return [name for name in names(record) if name != "detach"]

    assert plain(train(2, dry=True)) == plain(train(2))


def test_a_dry_run_allocates_nothing() -> None:
    with openreg_predict.record(dry=True) as record:
        model = nn.Linear(2**17, 2**17)  # 64 GiB
        model.to("openreg")
        y = model(torch.ones(2, 2**17, device="openreg"))
    assert y.shape == (2, 2**17)
    assert torch.openreg.memory_allocated() < 2**20
    assert max(e.size for e in record.events if isinstance(e, Alloc)) == 2**36


def test_a_dry_run_lists_assumed_values() -> None:
    with openreg_predict.record(dry=True) as record:
        x = torch.rand(10, device="openreg")
        assert x.sum().item() == 1.0
        assert not torch.isnan(x).any()
    assert record.assumed == {"aten::_local_scalar_dense": 2}


def test_a_dry_run_knows_numbers_that_the_program_wrote() -> None:
    with openreg_predict.record(dry=True) as record:
        assert torch.zeros((), device="openreg").item() == 0
        assert torch.full((1,), 7, device="openreg").item() == 7
        assert torch.tensor(5).to("openreg").item() == 5
    assert record.assumed == {}


def test_a_dry_run_rejects_shapes_that_depend_on_data() -> None:
    with openreg_predict.record(dry=True):
        x = torch.rand(10, device="openreg")
        with pytest.raises(RuntimeError, match="shape depends on data"):
            x.nonzero()


def test_a_dry_run_accepts_generator_states_without_data() -> None:
    set_state, seed = torch.openreg.set_rng_state, torch.openreg.initial_seed()
    with openreg_predict.record(dry=True):
        state = torch.openreg.get_rng_state().to("openreg")  # as DTensor does
        torch.openreg.set_rng_state(state.cpu())
    assert torch.openreg.set_rng_state is set_state
    assert torch.openreg.initial_seed() == seed


def test_a_dry_run_computes_no_constants() -> None:
    name = "openreg_predict_test::twice"
    calls = []

    @torch.library.custom_op(name, mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        calls.append(x)
        return x * 2

    twice.register_fake(torch.empty_like)
    with openreg_predict.record(dry=True) as record:
        twice(torch.tensor(3).to("openreg"))
    assert not calls
    assert names(record).count("twice") == 1


def test_gradients_are_clipped_with_foreach_functions_in_a_dry_run() -> None:
    with openreg_predict.record(dry=True) as record:
        parameters = [nn.Parameter(torch.ones(4, device="openreg")) for _ in range(3)]
        for each in parameters:
            each.grad = torch.ones_like(each)
        nn.utils.clip_grad_norm_(parameters, 1.0)
    assert names(record).count("_foreach_norm") == 1
    assert names(record).count("_foreach_mul_") == 1


@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_one_kernel_in_a_dry_run(masked: bool) -> None:
    attention = torch.nn.functional.scaled_dot_product_attention
    with openreg_predict.record(dry=True) as record:
        q = torch.rand(2, 4, 8, 16, device="openreg", dtype=torch.bfloat16)
        q.requires_grad_()
        mask = torch.ones(8, 8, dtype=torch.bool, device="openreg") if masked else None
        torch.nn.functional.scaled_dot_product_attention(q, q, q, mask).sum().backward()
    kind = "efficient" if masked else "flash"
    assert f"_scaled_dot_product_{kind}_attention" in names(record)
    assert f"_scaled_dot_product_{kind}_attention_backward" in names(record)
    assert "bmm" not in names(record)
    assert torch.nn.functional.scaled_dot_product_attention is attention


# ---- attention that the device composes of other operators

ATTENTION = torch.nn.functional.scaled_dot_product_attention
EFFICIENT = "_scaled_dot_product_efficient_attention"
ROWS = 128


def attention_inputs(dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(2, 4, ROWS, 16, generator=generator)
        .to(dtype)
        .to("openreg")
        .requires_grad_()
        for _ in range(3)
    ]


def largest(record: Record) -> int:
    return max(each.size for each in record.events if isinstance(each, Alloc))


@pytest.mark.parametrize("dry", [False, True])
@pytest.mark.parametrize(
    ("dtype", "kind"), [(torch.float32, "efficient"), (torch.bfloat16, "flash")]
)
def test_attention_with_dropout_is_one_kernel_in_each_direction(
    dtype: torch.dtype, kind: str, dry: bool
) -> None:
    with openreg_predict.record(dry=dry) as record:
        q, k, v = attention_inputs(dtype)
        torch.nn.functional.scaled_dot_product_attention(
            q, k, v, dropout_p=0.25
        ).backward(torch.ones_like(q))
    name = f"_scaled_dot_product_{kind}_attention"
    assert [each for each in names(record) if each.startswith("_")] == [
        *["_to_copy"] * names(record).count("_to_copy"),
        name,
        f"{name}_backward",
    ]
    assert "bmm" not in names(record)
    assert largest(record) == q.nbytes
    assert q.grad is not None
    forward, backward = (
        work for work in works_of(record).values() if work.kind == "attention"
    )
    assert forward.flops == 4 * 2 * 4 * ROWS * ROWS * 16
    assert backward.flops == 2.5 * forward.flops


@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_dropout_has_the_same_numbers_while_recording(
    causal: bool,
) -> None:
    def run() -> list[torch.Tensor]:
        torch.manual_seed(3)
        inputs = attention_inputs()
        result = torch.nn.functional.scaled_dot_product_attention(
            *inputs, dropout_p=0.25, is_causal=causal
        )
        result.square().sum().backward()
        assert all(x.grad is not None for x in inputs)
        return [x.cpu() for x in (result, torch.rand(4, device="openreg"))] + [
            x.grad.cpu() for x in inputs
        ]

    expected = run()
    with openreg_predict.record():
        found = run()
    assert all(map(torch.equal, found, expected))
    assert torch.nn.functional.scaled_dot_product_attention is ATTENTION


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("transposed", [False, True])
def test_results_of_attention_may_change_in_place_while_recording(
    dtype: torch.dtype, transposed: bool
) -> None:
    def run() -> torch.Tensor:
        torch.manual_seed(3)
        attention = torch.nn.functional.scaled_dot_product_attention
        result = attention(*attention_inputs(dtype), dropout_p=0.25)
        changed = result.transpose(1, 2) if transposed else result
        changed.mul_(2)
        return result

    expected = run()
    with openreg_predict.record():
        found = run()
    assert torch.equal(found, expected)
    # CUDA's kernel keeps its result for the backward pass, unlike this device.
    expected.sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        found.sum().backward()


def test_results_of_attention_may_change_in_place_after_the_backward_pass() -> None:
    def run() -> list[torch.Tensor]:
        torch.manual_seed(3)
        inputs = attention_inputs()
        attention = torch.nn.functional.scaled_dot_product_attention
        result = attention(*inputs, dropout_p=0.25)
        result.sum().backward()
        with torch.no_grad():
            result.mul_(2)
        assert all(x.grad is not None for x in inputs)
        return [result, *(x.grad for x in inputs if x.grad is not None)]

    expected = run()
    with openreg_predict.record():
        found = run()
    assert all(map(torch.equal, found, expected))


def test_attention_without_gradients_is_one_kernel() -> None:
    q, k, v = attention_inputs()
    with torch.no_grad(), openreg_predict.record() as record:
        torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.25)
    assert "bmm" not in names(record)
    work = works_of(record)
    assert [x.kind for x in work.values() if x.kind != "view"] == ["attention"]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_masks_that_the_device_composes_are_one_kernel_with_their_gradient(
    dropout: float,
) -> None:
    def run() -> list[torch.Tensor]:
        torch.manual_seed(3)
        inputs = attention_inputs()
        mask = torch.randn(ROWS, ROWS, device="openreg", requires_grad=True)
        attention = torch.nn.functional.scaled_dot_product_attention
        result = attention(*inputs, mask, dropout_p=dropout)
        result.square().sum().backward()
        gradients = [x.grad for x in (*inputs, mask) if x.grad is not None]
        assert len(gradients) == 4
        return [result, *gradients]

    expected = run()
    with openreg_predict.record() as record:
        found = run()
    assert all(map(torch.equal, found, expected))
    assert "bmm" not in names(record)
    call = first(record, "_scaled_dot_product_efficient_attention").call
    assert call.tensor("attn_bias").shape == (2, 4, ROWS, ROWS)


@pytest.mark.parametrize("shape", [(4, ROWS, ROWS), (ROWS, ROWS)])
@pytest.mark.parametrize("trained", [False, True])
def test_masks_that_the_device_composes_have_the_same_numbers_without_gradients(
    shape: tuple[int, ...], trained: bool
) -> None:
    inputs = attention_inputs()
    mask = torch.randn(shape).to("openreg").requires_grad_(len(shape) == 2)

    def run() -> torch.Tensor:
        with torch.set_grad_enabled(trained):
            attention = torch.nn.functional.scaled_dot_product_attention
            return attention(*inputs, mask)

    expected = run()
    with openreg_predict.record() as record:
        found = run()
    assert torch.equal(found, expected)
    assert EFFICIENT in names(record)


@pytest.mark.parametrize("mask", ["", "boolean", "trained"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_has_the_same_operators_in_real_and_dry_runs(
    dtype: torch.dtype, mask: str
) -> None:
    def run(dry: bool) -> list[str]:
        with openreg_predict.record(dry=dry) as record:
            x = torch.ones(2, ROWS, 192, device="openreg", dtype=dtype)
            x.requires_grad_()
            parts = (x * 2).split(64, -1)
            q, k, v = (y.view(2, ROWS, 4, 16).transpose(1, 2) for y in parts)
            bias = torch.ones(1, 4, ROWS, ROWS, device="openreg", dtype=dtype)
            chosen = {
                "": None,
                "boolean": bias[0].bool(),
                "trained": bias.requires_grad_(),
            }
            result = torch.nn.functional.scaled_dot_product_attention(
                q, k, v, chosen[mask], dropout_p=0.25
            )
            result.transpose(1, 2).reshape(2, ROWS, 64).sum().backward()
        return [name for name in names(record) if name != "detach"]

    found = run(dry=False)
    assert found == run(dry=True)
    assert "clone" not in found
    assert found.count("sum") == (2 if mask == "trained" else 1)


@pytest.mark.parametrize("dry", [False, True])
def test_a_boolean_mask_becomes_numbers_in_one_kernel(dry: bool) -> None:
    def run() -> torch.Tensor:
        torch.manual_seed(3)
        q, k, v = (x.detach() for x in attention_inputs())
        mask = torch.ones(ROWS, ROWS, dtype=torch.bool, device="openreg").tril_()
        attention = torch.nn.functional.scaled_dot_product_attention
        with torch.device("openreg"):  # numbers stay on the host
            return attention(q, k, v, mask, dropout_p=0.5)

    expected = run()
    with openreg_predict.record(dry=dry) as record:
        found = run()
    assert dry or torch.equal(found, expected)
    listed = names(record)
    before = listed[listed.index("tril_") + 1 : listed.index(EFFICIENT)]
    works = works_of(record)
    kernels = [
        op.call.name
        for i, op in enumerate(record.events)
        if isinstance(op, Op) and op.call.name in before and works[i].kind != "view"
    ]
    assert kernels == ["where"]
    bias = first(record, EFFICIENT).call.tensor("attn_bias")
    assert (bias.shape, bias.dtype) == ((2, 4, ROWS, ROWS), "f32")


@pytest.mark.parametrize("dry", [False, True])
def test_a_mask_with_strided_rows_stays_products(dry: bool) -> None:
    with openreg_predict.record(dry=dry) as record:
        q, k, v = attention_inputs()
        mask = torch.zeros(ROWS, ROWS, device="openreg").t()
        torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, dropout_p=0.5)
    assert names(record).count("bmm") == 2


@pytest.mark.parametrize("dry", [False, True])
@pytest.mark.parametrize(
    ("dtype", "masked", "kernel"),
    [
        (torch.bfloat16, False, "flash"),
        (torch.bfloat16, True, ""),
        (torch.float32, False, ""),
        (torch.float32, True, ""),
    ],
)
def test_grouped_heads_are_one_kernel_only_with_flash_attention(
    dtype: torch.dtype, masked: bool, kernel: str, dry: bool
) -> None:
    with openreg_predict.record(dry=dry) as record:
        q, k, v = attention_inputs(dtype)
        mask = torch.zeros(ROWS, ROWS, device="openreg", dtype=dtype)
        torch.nn.functional.scaled_dot_product_attention(
            q, k[:, :2], v[:, :2], mask if masked else None, 0.25, enable_gqa=True
        )
    kernels = [name for name in names(record) if name.endswith("_attention")]
    assert kernels == [f"_scaled_dot_product_{kernel}_attention"] * bool(kernel)
    assert ("bmm" in names(record)) is not bool(kernel)


def test_attention_that_a_program_holds_is_recorded_only_in_its_recording() -> None:
    with openreg_predict.record() as record:
        held = torch.nn.functional.scaled_dot_product_attention
        held(*attention_inputs(), dropout_p=0.25)
        ATTENTION(*attention_inputs(), dropout_p=0.25)  # imported before
    assert names(record).count(EFFICIENT) == 1
    assert names(record).count("bmm") == 2
    count = len(record.events)
    with openreg_predict.record() as later:
        held(*attention_inputs(), dropout_p=0.25)
    assert len(record.events) == count
    assert names(later).count("bmm") == 2


def test_attention_without_a_kernel_warns_as_often_while_recording() -> None:
    def run() -> list[str]:
        inputs = attention_inputs(torch.bfloat16)
        context = torch.nn.attention.sdpa_kernel(
            torch.nn.attention.SDPBackend.FLASH_ATTENTION
        )
        attention = torch.nn.functional.scaled_dot_product_attention
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with context, pytest.raises(RuntimeError, match="No available kernel"):
                attention(*inputs, dropout_p=0.25)
        return [str(each.message) for each in caught]

    expected = run()
    assert expected
    with openreg_predict.record():
        assert run() == expected


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_graphs_with_attention_can_be_captured_while_recording(
    masked: bool, dropout: float
) -> None:
    attention = torch.nn.functional.scaled_dot_product_attention
    q = torch.ones(2, 4, 64, 16, device="openreg", dtype=torch.float16)
    mask = torch.ones(64, 64, device="openreg", dtype=torch.bool) if masked else None
    attention(q, q, q, mask, dropout_p=dropout)
    stream, graph = torch.Stream("openreg"), torch.accelerator.Graph()
    torch.accelerator.synchronize()
    with openreg_predict.record() as record:
        with stream, graph:
            result = torch.nn.functional.scaled_dot_product_attention(
                q, q, q, mask, dropout_p=dropout
            )
        graph.replay()
    torch.accelerator.synchronize()
    assert result.isfinite().all()
    assert result.any()
    begin, end = (i for i, e in enumerate(record.events) if isinstance(e, Capture))
    captured = [e.call.name for e in record.events[begin:end] if isinstance(e, Op)]
    assert len([name for name in captured if "attention" in name]) == 1
    assert "bmm" not in captured


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_of_a_tensor_to_itself_has_the_same_gradient_while_recording(
    dtype: torch.dtype, masked: bool
) -> None:
    mask = torch.randn(ROWS, ROWS).to("openreg", dtype) if masked else None

    def run() -> torch.Tensor:
        torch.manual_seed(3)
        x = attention_inputs(dtype)[0]
        attention = torch.nn.functional.scaled_dot_product_attention
        attention(x, x, x, mask, dropout_p=0.25).square().sum().backward()
        assert x.grad is not None
        return x.grad

    expected = run()
    with openreg_predict.record() as record:
        found = run()
    assert torch.equal(found, expected)
    assert "bmm" not in names(record)


@pytest.mark.parametrize(
    ("arguments", "keywords"),
    [
        ((0, 0, 0, None, 0.25, False, 1.0), {}),
        ((0, None, 0), {}),
        ((0, 0), {}),
        ((0, 0, 0), {"dropout": 0.25}),
        ((0, 0, 0), {"dropout_p": "0.25"}),
        ((0, 0, 0), {"dropout_p": 1.5}),
        ((0, 0, 0, "wide"), {"dropout_p": 0.25}),
    ],
)
def test_attention_refuses_the_same_arguments_while_recording(
    arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    tensors = {0: attention_inputs()[0], "wide": torch.ones(3, 3, device="openreg")}

    def run() -> tuple[type[BaseException], str]:
        attention = torch.nn.functional.scaled_dot_product_attention
        with pytest.raises((TypeError, RuntimeError)) as caught:
            attention(*(tensors.get(x, x) for x in arguments), **keywords)
        return caught.type, str(caught.value)

    expected = run()
    with openreg_predict.record():
        assert run() == expected


def test_a_backward_pass_belongs_to_the_recording_that_is_active_then() -> None:
    def forward() -> torch.Tensor:
        attention = torch.nn.functional.scaled_dot_product_attention
        return attention(*attention_inputs(), dropout_p=0.25).sum()

    with openreg_predict.record() as first_record:
        losses = [forward(), forward()]
    count = len(first_record.events)
    losses.pop().backward()
    with openreg_predict.record() as later:
        losses.pop().backward()
    assert len(first_record.events) == count
    assert f"{EFFICIENT}_backward" not in names(first_record)
    assert names(later).count(f"{EFFICIENT}_backward") == 1
    assert "bmm" not in names(later)


def test_a_record_does_not_change_after_its_end() -> None:
    with openreg_predict.record() as record:
        x = torch.ones(4, device="openreg")
    count = len(record.events)
    del x
    assert len(record.events) == count


def test_attention_that_cuda_composes_stays_products() -> None:
    inputs = attention_inputs()
    context = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)
    with openreg_predict.record() as record:
        attention = torch.nn.functional.scaled_dot_product_attention
        with context:
            attention(*inputs, dropout_p=0.25)
        attention(*(x[..., :6] for x in inputs), dropout_p=0.25)  # not aligned
    assert names(record).count("bmm") == 4


def test_checkpointed_attention_is_computed_again_and_keeps_its_inputs() -> None:
    from torch.utils.checkpoint import checkpoint

    def run() -> list[torch.Tensor]:
        torch.manual_seed(3)
        inputs = attention_inputs()
        attention = torch.nn.functional.scaled_dot_product_attention
        checkpoint(
            lambda *x: attention(*(each.sin() for each in x), dropout_p=0.25).cos(),
            *inputs,
            use_reentrant=False,
        ).sum().backward()
        return [x.grad.cpu() for x in inputs if x.grad is not None]

    expected = run()
    with openreg_predict.record() as record:
        found = run()
    assert all(map(torch.equal, found, expected))
    kernels = [name for name in names(record) if "attention" in name]
    forward = "_scaled_dot_product_efficient_attention"
    assert kernels == [forward, forward, f"{forward}_backward"]
    # The checkpoint releases the sines of its forward pass before the backward pass.
    sines = [op.call.results[0].storage for op in record.ops() if op.call.name == "sin"]
    del sines[6:]  # the derivative of the cosine
    places = {e.storage: i for i, e in enumerate(record.events) if isinstance(e, Free)}
    backward = record.events.index(first(record, f"{forward}_backward"))
    assert [places[each or 0] < backward for each in sines] == [True] * 3 + [False] * 3


def test_attention_with_dropout_has_its_module_in_the_backward_pass() -> None:
    model = nn.MultiheadAttention(16, 2, dropout=0.5, batch_first=True).to("openreg")
    x = torch.ones(2, 8, 16, device="openreg")
    with openreg_predict.record() as record:
        nn.Sequential(_SelfAttention(model))(x).sum().backward()
    backward = first(record, "_scaled_dot_product_efficient_attention_backward")
    assert record.modules[backward.module] == "0.inner"
    assert backward.phase == "backward"


class _SelfAttention(nn.Module):
    def __init__(self, inner: nn.MultiheadAttention) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the attention of each row to all rows."""
        return self.inner(x, x, x, need_weights=False)[0]  # type: ignore[no-any-return]


class _Ahead(torch.autograd.Function):
    """Computes attention in its backward pass, in another thread."""

    number = 0  # of the first autograd node of the attention

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Returns its input, and chooses a number for the backward pass."""
        _Ahead.number = torch._C._autograd._get_sequence_nr() + 50
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Returns its gradient."""
        with torch.enable_grad():
            inputs = attention_inputs()
            _make_nodes_up_to(_Ahead.number)
            torch.nn.functional.scaled_dot_product_attention(*inputs, dropout_p=0.25)
        return gradient


def _make_nodes_up_to(number: int) -> None:
    x = torch.ones(1, requires_grad=True)
    while torch._C._autograd._get_sequence_nr() < number:
        x.sin()
    assert torch._C._autograd._get_sequence_nr() == number


def test_attention_in_a_backward_pass_places_no_operators_of_the_program() -> None:
    compiled = torch.compile(torch.sin, backend="eager")
    x = torch.ones(4, device="openreg", requires_grad=True)
    with openreg_predict.record() as record:
        _Ahead.apply(x).sum().backward()  # type: ignore[no-untyped-call]
        _make_nodes_up_to(_Ahead.number)
        compiled(x).sum().backward()
    assert EFFICIENT in names(record)
    assert first(record, "sin").region == 0
    assert first(record, "cos").region == 1


@pytest.mark.parametrize("linear", [False, True])
def test_attention_with_dropout_has_second_derivatives_while_recording(
    linear: bool,
) -> None:
    def run() -> list[torch.Tensor]:
        torch.manual_seed(3)
        inputs = attention_inputs()
        attention = torch.nn.functional.scaled_dot_product_attention
        result = attention(*inputs, dropout_p=0.25)
        (gradient,) = torch.autograd.grad(
            (result if linear else result.square()).sum(), inputs[0], create_graph=True
        )
        gradient.square().sum().backward()
        gradients = [x.grad for x in inputs if x.grad is not None]
        assert len(gradients) == 3
        return [gradient, *gradients]

    expected = run()
    with openreg_predict.record():
        found = run()
    for each, other in zip(found, expected, strict=True):
        torch.testing.assert_close(each, other)


# ---- collectives and graphs


def test_collectives_have_the_size_of_their_group() -> None:
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("openreg:fake", rank=0, world_size=8, store=FakeStore())
    try:
        with openreg_predict.record() as record:
            x = torch.ones(1024, device="openreg")
            dist.all_reduce(x)
            dist.broadcast(x, 0, async_op=True)
            parts = [torch.empty(1024, device="openreg") for _ in range(8)]
            dist.all_gather(parts, x)
    finally:
        dist.destroy_process_group()
    collectives = [op for op in record.ops() if op.ranks]
    assert [(op.call.name, op.ranks, op.is_async) for op in collectives] == [
        ("all_reduce", 8, False),
        ("broadcast", 8, True),
        ("all_gather", 8, False),
    ]
    works = [work for work in works_of(record).values() if work.kind == "collective"]
    assert [work.read for work in works] == [4096.0, 4096.0, 8 * 4096.0]


def test_a_graph_is_captured_once_and_replayed() -> None:
    x = torch.ones(10, device="openreg")
    graph = torch.accelerator.Graph()
    with openreg_predict.record() as record:
        stream = torch.Stream()
        with stream, graph:
            x += 1
        graph.replay()
        graph.replay()
        torch.openreg.synchronize()
    assert x[0].item() == 3
    kinds = [type(e) for e in record.events if isinstance(e, (Capture, Replay))]
    assert kinds == [Capture, Capture, Replay, Replay]
    assert len(record.predict("t4").timeline.spans) == 2


def test_compiled_modules_are_recorded_without_a_warning() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).to("openreg")
    compiled = torch.compile(model, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with openreg_predict.record() as record:
            compiled(torch.ones(2, 4, device="openreg"))
    op = first(record, "addmm")
    assert record.modules[op.module] == "0"
    assert op.region == 0


def test_whole_graphs_are_recorded() -> None:
    compiled = torch.compile(lambda x: x.sin(), backend="eager", fullgraph=True)
    with openreg_predict.record() as record:
        compiled(torch.ones(4, device="openreg"))
    assert first(record, "sin").region == 0
    assert compiled(torch.zeros(4)).sum().item() == 0


def test_filters_of_warnings_that_a_program_sets_outlive_the_recording() -> None:
    with warnings.catch_warnings():
        with openreg_predict.record():
            warnings.filterwarnings("ignore", "of the program")
        with warnings.catch_warnings(record=True) as seen:
            warnings.warn("of the program", stacklevel=1)
    assert not seen


def test_module_that_raises_is_left() -> None:
    model = nn.Sequential(nn.Linear(4, 4)).to("openreg")
    with openreg_predict.record() as record:
        with pytest.raises(RuntimeError, match="shapes"):
            model(torch.ones(2, 3, device="openreg"))
        torch.ones(2, device="openreg").neg()
    assert record.modules[first(record, "neg").module] == ""
    assert "__call__" in vars(nn.Module)
    assert nn.Module.__call__ is nn.Module._wrapped_call_impl


def test_flex_attention_is_one_kernel_in_each_direction() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    q, k, v = (
        torch.randn(1, 2, 16, 8, device="openreg", requires_grad=True) for _ in range(3)
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "flex_attention called without torch.compile")
        with openreg_predict.record() as record:
            flex_attention(q, k, v).sum().backward()
    assert "flex_attention" in names(record)
    assert "flex_attention_backward" in names(record)
    assert "bmm" not in names(record)
    assert q.grad is not None
    forward, backward = (
        work for work in works_of(record).values() if work.kind == "attention"
    )
    assert forward.flops == 4 * 2 * 16 * 16 * 8
    assert backward.flops == 2.5 * forward.flops
    assert not record.problems


def test_calls_within_other_higher_order_operators_are_a_problem() -> None:
    x = torch.ones(4, device="openreg")
    with openreg_predict.record() as record:
        y = torch.ops.higher_order.cond(
            True, lambda x: x.sin(), lambda x: x.cos(), (x,)
        )
    assert record.problems == ["the calls within cond are not recorded"]
    assert torch.equal(y.cpu(), torch.ones(4).sin())
