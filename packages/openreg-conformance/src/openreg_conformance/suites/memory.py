# SPDX-License-Identifier: BSD-3-Clause
"""Memory: what is allocated, given back, counted, pinned, and refused."""

import gc

import torch

from openreg_conformance.case import Suite

_suite = Suite(__name__)
case, cases = _suite.case, _suite.cases

MEBI = 2**20


def allocated():
    gc.collect()
    torch.accelerator.synchronize()
    return torch.accelerator.memory_allocated()


@case("allocator", subject="living tensors")
def living_tensors_have_memory_of_their_own(device):
    """Living tensors do not share memory, whatever was freed before."""
    kept = []
    for i in range(60):
        x = torch.full((1 + 37 * i % 400,), float(i), device=device)
        if i % 3:
            kept.append((i, x))
    places = sorted((x.data_ptr(), x.numel() * 4) for _, x in kept)
    for (start, size), (following, _) in zip(places, places[1:]):
        assert start + size <= following, "two tensors overlap"
    for i, x in kept:
        assert set(x.tolist()) == {float(i)}, f"tensor {i} has other values"


@case("allocator", subject="tensors without elements", users=0.4)
def tensor_without_elements(device):
    """A tensor without elements needs no memory and works in operators."""
    x = torch.empty(0, device=device)
    assert (x + x).shape == (0,)
    assert torch.cat([x, torch.ones(2, device=device)]).tolist() == [1, 1]
    assert x.sum().item() == 0


@case("allocator", "accelerator", subject="out of memory", users=0.6)
def out_of_memory_is_an_exception(device):
    """An allocation beyond the device memory raises torch.OutOfMemoryError."""
    try:
        torch.empty(2**50, dtype=torch.uint8, device=device)
    except torch.OutOfMemoryError:
        pass
    else:
        raise AssertionError("a tensor of 2**50 bytes was made")
    assert (torch.ones(3, device=device) * 2).tolist() == [2, 2, 2]


@case("allocator", "accelerator", subject="alignment", users=0.3)
def memory_is_aligned(device):
    """The memory of a tensor is aligned to at least 16 bytes."""
    for size in (1, 3, 17, 1000):
        x = torch.empty(size, dtype=torch.uint8, device=device)
        assert x.data_ptr() % 16 == 0, f"{size} bytes at {x.data_ptr():#x}"


@case("storage")
def storages_are_shared_and_resized(device):
    """Storages have a size, are shared by views and set_, and can be resized."""
    x = torch.arange(6.0, device=device)
    assert x.untyped_storage().nbytes() >= 24
    assert x.untyped_storage().device.type == device
    y = torch.empty(0, device=device).set_(x.untyped_storage(), 2, (2, 2), (2, 1))
    assert y.tolist() == [[2, 3], [4, 5]]
    y.fill_(9)
    assert x.tolist() == [0, 1, 9, 9, 9, 9]
    x = torch.arange(4.0, device=device)
    x.resize_(2, 4)
    assert x.shape == (2, 4)
    assert x[0].tolist() == [0, 1, 2, 3], "resize_ has lost values"
    z = torch.ones(3, device=device)
    z.untyped_storage().resize_(0)
    assert z.untyped_storage().nbytes() == 0
    z.untyped_storage().resize_(12)
    z.fill_(2)
    assert z.tolist() == [2, 2, 2]


@case("statistics", "accelerator")
def statistics_follow_tensors(device):
    """memory_allocated rises with a tensor and falls when it is freed."""
    before = allocated()
    x = torch.empty(8 * MEBI, dtype=torch.uint8, device=device)
    during = torch.accelerator.memory_allocated()
    assert during >= before + 8 * MEBI, f"{before} before, {during} with 8 MiB more"
    y = x[5:]
    del x
    assert torch.accelerator.memory_allocated() == during, "a view keeps the memory"
    del y
    assert allocated() == before, "the memory of a tensor is not given back"


@case("statistics", "accelerator", subject="peaks")
def peaks_are_kept_and_reset(device):
    """max_memory_allocated keeps the peak until it is reset."""
    torch.accelerator.reset_peak_memory_stats()
    before = allocated()
    x = torch.empty(4 * MEBI, dtype=torch.uint8, device=device)
    del x
    gc.collect()
    assert torch.accelerator.max_memory_allocated() >= before + 4 * MEBI
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.max_memory_allocated() < before + 4 * MEBI


@case("statistics", "accelerator", subject="reserved memory", users=0.2)
def reserved_memory_is_given_back(device):
    """memory_reserved includes allocated memory; empty_cache releases the rest."""
    x = torch.empty(32 * MEBI, dtype=torch.uint8, device=device)
    assert torch.accelerator.memory_reserved() >= torch.accelerator.memory_allocated()
    del x
    allocated()
    torch.accelerator.empty_cache()
    reserved = torch.accelerator.memory_reserved()
    assert reserved < torch.accelerator.memory_allocated() + 32 * MEBI


@case("statistics", "accelerator", subject="operators that leak", users=0.6)
def operators_give_their_memory_back(device):
    """Operators, and forward and backward of a network, do not leak memory."""
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.LayerNorm(32)
    ).to(device)
    x = torch.ones(8, 32, device=device)

    def step():
        model(x).square().sum().backward()
        model.zero_grad(set_to_none=True)
        y = (x + 1) @ x.t()
        return y.softmax(0).max().item()

    step()
    before = allocated()
    for _ in range(5):
        step()
    grown = allocated() - before
    assert grown == 0, f"{grown} bytes are left after 5 steps"


@case("statistics", "accelerator", subject="failed operators that leak", users=0.2)
def failed_operators_give_their_memory_back(device):
    """An operator that raises does not leak memory."""
    x = torch.ones(64, 64, device=device)

    def fail():
        try:
            x @ torch.ones(65, 2, device=device)
        except RuntimeError:
            return
        raise AssertionError("matrices of incompatible shapes were multiplied")

    fail()
    before = allocated()
    for _ in range(5):
        fail()
    assert allocated() == before


@case("host_allocator", "accelerator")
def memory_is_pinned(device):
    """pin_memory gives pinned memory with the same values; is_pinned detects it."""
    x = torch.arange(100.0)
    assert not x.is_pinned(), "memory that is not pinned is called pinned"
    y = x.pin_memory()
    assert y.is_pinned() and y.device.type == "cpu" and y.equal(x)
    assert y[3:].is_pinned()
    assert y.pin_memory() is y
    z = torch.empty(10, pin_memory=True)
    assert z.is_pinned()
    assert y.to(device).cpu().equal(x)


@case("host_allocator", "accelerator", subject="copies that do not wait", users=0.65)
def pinned_copies_have_the_values(device):
    """non_blocking copies of pinned memory have the values after a synchronization."""
    x = torch.arange(100000.0).pin_memory()
    there = x.to(device, non_blocking=True)
    there += 1
    back = torch.empty(x.shape, pin_memory=True)
    back.copy_(there, non_blocking=True)
    torch.accelerator.synchronize()
    assert back.equal(torch.arange(100000.0) + 1)


@case("host_allocator", "accelerator", subject="memory in use by a copy", users=0.3)
def pinned_memory_outlives_its_copies(device):
    """Pinned memory that is freed during a copy is not reused before its end."""
    for i in range(30):
        x = torch.full((50000,), float(i)).pin_memory()
        there = x.to(device, non_blocking=True)
        del x
        other = torch.full((50000,), -1.0).pin_memory()
        assert there.sum().item() == 50000.0 * i, "the copy read other memory"
        del other
