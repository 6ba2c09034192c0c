# SPDX-License-Identifier: BSD-3-Clause
"""The comparison detects each kind of difference."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch

from openreg_conformance.checks.observing import Host, observe, refusal

from .agreement import DEVICE, program

Program = Callable[[str], object]
PLANTED: dict[str, tuple[Program, str]] = {}


def planted(fact: str) -> Callable[[Program], Program]:
    """Adds a program whose named fact differs on the device."""

    def note(function: Program) -> Program:
        PLANTED[function.__name__] = (function, fact)
        return function

    return note


def base(device: str) -> torch.Tensor:
    return torch.tensor([1.0, -0.0, float("nan")], device=device)


@planted("result values")
def one_bit(device):
    return base(device).abs() if device == DEVICE else base(device)


@planted("result dtype")
def dtype(device):
    return base(device).to(torch.float64 if device == DEVICE else torch.float32)


@planted("result stride")
def stride(device):
    x = torch.zeros(2, 2, device=device)
    return x.mT if device == DEVICE else x.view(2, 2)


@planted("result version")
def version(device):
    x = base(device)
    return x.add_(0) if device == DEVICE else x


@planted("result[1] is")
def identity(device):
    x = base(device)
    return x, x.detach() if device == DEVICE else x


@planted("result[1] storage")
def storage(device):
    x = base(device)
    return x.detach(), (x.clone() if device == DEVICE else x).detach()


@planted("result is_view")
def view(device):
    x = base(device)
    return x.view(3) if device == DEVICE else x


@planted("result requires_grad")
def requires_grad(device):
    return base(device).requires_grad_(device == DEVICE)


@planted("result grad_fn")
def grad_fn(device):
    x = base(device).requires_grad_()
    return x * 1 if device == DEVICE else x / 1


@planted("result device")
def tensor_on_the_host(device):
    return base("cpu")


@planted("result device")
def tensor_on_the_device(device):
    return Host(base(device))


@planted("result[0]")
def plain_value(device):
    return [device == DEVICE]


@planted("result[0]")
def name_of_the_host(device):
    return [torch.zeros(1).device]


@planted("result[0]")
def plain_type(device):
    return [1.0 if device == DEVICE else 1]


@planted("result has")
def names(device):
    return {device[0]: None}


@planted("result has")
def number_of_calls(device):
    return ["hook"] * len(device)


@planted("warnings")
def warning(device):
    if device == DEVICE:
        warnings.warn("beware", stacklevel=1)


@planted("warnings")
def warning_that_pytorch_gives_once(device):
    if device == DEVICE:  # by TORCH_WARN_ONCE
        torch.arange(4.0).resize_(2, 2).T.T.to_sparse_csr()


@planted("result")
def exception_type(device):
    error = ValueError if device == DEVICE else TypeError
    return refusal(lambda: (_ for _ in ()).throw(error("no")), "no")


@planted("result")
def exception_message(device):
    text = "no tensor" if device == DEVICE else "no device"
    return refusal(lambda: (_ for _ in ()).throw(ValueError(text)), "no")


@pytest.mark.parametrize("name", PLANTED)
def test_planted_difference_is_noticed(name: str) -> None:
    function, fact = PLANTED[name]
    with pytest.raises(AssertionError, match="differs from the CPU") as caught:
        program(function)()
    lines = str(caught.value).splitlines()
    assert any(line.startswith(f"{fact}: ") for line in lines), lines


@pytest.mark.parametrize("name", PLANTED)
def test_program_agrees_with_itself(name: str) -> None:
    function, _ = PLANTED[name]
    assert observe(function, "cpu") == observe(function, "cpu")


def test_exception_of_only_the_device_fails() -> None:
    def fail(device: str) -> None:
        if device == DEVICE:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        program(fail)()


def test_refusal_that_does_not_come_fails() -> None:
    with pytest.raises(AssertionError, match="nothing was raised"):
        refusal(lambda: None, "no")


def test_refusal_with_other_words_fails() -> None:
    with pytest.raises(ZeroDivisionError):
        refusal(lambda: 1 // 0, "modified")


def test_names_of_devices_are_no_difference() -> None:
    @program
    def text(device):
        x = torch.zeros(1, device=device)
        return [x.type(), repr(x), str(x.device), x.device]

    text()
