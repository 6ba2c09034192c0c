# SPDX-License-Identifier: BSD-3-Clause
"""Threads: thread-local and shared state."""

from __future__ import annotations

import threading

import torch

from openreg_conformance.suites.semantics.threads import elsewhere, leaf

from .agreement import DEVICE


def test_current_device_belongs_to_the_thread() -> None:
    # CUDA: cudaSetDevice; c10::cuda::SetDevice in c10/cuda/CUDAFunctions.cpp.
    with torch.openreg.device(1):
        assert elsewhere(torch.openreg.current_device) == 0
        assert torch.openreg.current_device() == 1


def test_current_stream_belongs_to_the_thread() -> None:
    # CUDA: the thread-local current_streams in c10/cuda/CUDAStream.cpp.
    side = torch.Stream(DEVICE)
    with side:
        there = elsewhere(torch.openreg.current_stream)
        assert torch.openreg.current_stream() == side
    assert there == torch.openreg.default_stream(0)


def test_hooks_of_the_device_run_in_its_autograd_thread() -> None:
    # CUDA: Engine::ready_queue in torch/csrc/autograd/engine.cpp: each device has a
    # thread; the CPU uses the caller's.
    x, threads = leaf(DEVICE), []
    y = x * 2
    y.register_hook(lambda grad: threads.append(threading.get_ident()))
    y.sum().backward()
    assert threads[0] != threading.get_ident()
    z = leaf("cpu") * 2
    z.register_hook(lambda grad: threads.append(threading.get_ident()))
    z.sum().backward()
    assert threads[1] == threading.get_ident()
