# SPDX-License-Identifier: BSD-3-Clause
"""Importing openreg_amp: alone, with another backend, disabled, on another torch."""

from __future__ import annotations

import pytest

from support.versions import MINOR

# A PrivateUse1 backend in Python. Its tensors have a shape and a type, but no data.
OTHER_BACKEND = """
import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_setup_privateuseone_for_python_backend()
new = torch._C._acc.create_empty_tensor
library = torch.library.Library("aten", "IMPL")
def kernel(name):
    return lambda function: library.impl(name, function, "PrivateUse1")
@kernel("empty.memory_format")
def _(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    return new(size, dtype or torch.float32)
@kernel("_to_copy")
def _(x, dtype=None, **rest):
    return new(x.shape, dtype or x.dtype)
@kernel("mm")
def _(a, b):
    return new((a.shape[0], b.shape[1]), torch.result_type(a, b))
@kernel("exp")
def _(a):
    return new(a.shape, a.dtype)
"""


def test_import_needs_only_torch(run_python):
    result = run_python(
        """
        import sys
        class Refuse:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in ("openreg_aten", "openreg_runtime"):
                    raise ModuleNotFoundError(f"{name} is not needed", name=name)
        sys.meta_path.insert(0, Refuse())
        import openreg_amp
        print(len(openreg_amp.rules()), *openreg_amp.get_amp_supported_dtype())
        """
    )
    assert result.returncode == 0, result.stderr
    count, *dtypes = result.stdout.split()
    assert int(count) > 100
    assert dtypes == ["torch.float16", "torch.bfloat16"]


def test_import_serves_another_backend(run_python):
    result = run_python(
        OTHER_BACKEND
        + """
import openreg_amp
a = torch.empty(2, 2, device="privateuseone")
with torch.autocast("privateuseone"):
    print(torch.mm(a, a).dtype, torch.exp(torch.mm(a, a)).dtype)
with torch.autocast("privateuseone", dtype=torch.bfloat16):
    print(torch.mm(a, a).dtype)
print(torch.mm(a, a).dtype)
"""
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [
        "torch.float16",
        "torch.float32",
        "torch.bfloat16",
        "torch.float32",
    ]


def test_import_keeps_the_types_a_backend_names_itself(run_python):
    result = run_python(
        OTHER_BACKEND
        + """
torch.privateuseone.get_amp_supported_dtype = lambda: [torch.bfloat16]
import openreg_amp
print(*torch.privateuseone.get_amp_supported_dtype())
"""
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["torch.bfloat16"]


def test_disable_leaves_the_rules_out(run_python):
    result = run_python(
        """
        import torch, openreg_aten, openreg_amp
        registered = torch._C._dispatch_get_registrations_for_dispatch_key
        print(len(openreg_amp.rules()), len(registered("AutocastPrivateUse1")))
        a = torch.empty(2, 2, device="privateuseone")
        with torch.autocast("privateuseone"):
            print(torch.mm(a, a).dtype)
        """,
        OPENREG_DISABLE="rnn, autocast",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["0", "0", "torch.float32"]
    assert "is not supported. Disabling autocast" in " ".join(result.stderr.split())


def test_disable_of_something_else_leaves_the_rules_in(run_python):
    result = run_python(
        "import openreg_aten, openreg_amp; print(len(openreg_amp.rules()))",
        OPENREG_DISABLE="dropout, rnn",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 100


def test_disable_does_not_apply_to_other_backends(run_python):
    result = run_python(
        f"{OTHER_BACKEND}\nimport openreg_amp; print(len(openreg_amp.rules()))",
        OPENREG_DISABLE="autocast",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 100


@pytest.mark.parametrize("version", ["2.99.1+cpu", "2.12.1"])
def test_import_refuses_another_torch(run_python, version):
    result = run_python(
        f"""
        from importlib import metadata
        metadata.version = lambda name: "{version}"
        import openreg_amp
        """
    )
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("RuntimeError: openreg-amp was built for torch 2.")
    assert MINOR in last
    assert f"but torch {version} is installed" in last
    assert 'pip install "torch==2.' in last


@pytest.mark.parametrize("rest", [".99", ".0+cu130", ".0a0+git1234"])
def test_import_compares_only_the_minor_version_of_torch(run_python, rest):
    result = run_python(
        f"""
        from importlib import metadata
        minor = ".".join(metadata.version("torch").split(".")[:2])
        metadata.version = lambda name: minor + "{rest}"
        import openreg_amp
        """
    )
    assert result.returncode == 0, result.stderr
