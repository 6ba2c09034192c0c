# SPDX-License-Identifier: BSD-3-Clause
"""Writes the program that reproduces an operator failure without this package."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .checks.mirrors import is_strided, tensors
from .checks.operators import BUSY
from .checks.tally import SEED, Call

_LITERAL = 40  # the most elements that are written out

_COMPARE = """
def leaves(values):
    return [x for x in pytree.tree_leaves(values) if isinstance(x, torch.Tensor)]

for mine, wanted in zip(leaves(result), leaves(expected)):
    print(mine.cpu(), "expected", wanted)
    assert mine.device.type == device, mine.device
    assert (mine.dtype, mine.shape) == (wanted.dtype, wanted.shape)
    if wanted.layout == torch.strided:
        assert mine.stride() == wanted.stride(), (mine.stride(), wanted.stride())
    torch.testing.assert_close(mine.cpu(), wanted, equal_nan=True)
"""
_MOVE = """\
def on(device):
    def move(x):
        if isinstance(x, torch.Tensor):
            copy = torch.empty_strided(
                x.shape, x.stride(), dtype=x.dtype, device=device)
            copy.copy_(x.detach())
            return copy.requires_grad_(x.requires_grad)
        return device if x in ("cpu", torch.device("cpu")) else x
    return pytree.tree_map(move, (args, kwargs))
"""
# Tensors that share memory also share it on the device.
_SHARING_MOVE = """\
def on(device):
    storages, made = {}, {}
    def move(x):
        if id(x) in made:
            return made[id(x)]
        if isinstance(x, torch.Tensor):
            storage = x.untyped_storage()
            if storage._cdata not in storages:
                raw = torch.empty(0, dtype=torch.uint8).set_(storage)
                storages[storage._cdata] = raw.to(device, copy=True)
            memory = storages[storage._cdata].untyped_storage()
            copy = torch.empty(0, dtype=x.dtype, device=device)
            copy.set_(memory, x.storage_offset(), x.size(), x.stride())
            made[id(x)] = copy.requires_grad_(x.requires_grad)
            return copy
        return device if x in ("cpu", torch.device("cpu")) else x
    return pytree.tree_map(move, (args, kwargs))
"""
_SPARSE_MOVE = _MOVE.replace(
    """            copy = torch.empty_strided(
                x.shape, x.stride(), dtype=x.dtype, device=device)
            copy.copy_(x.detach())
            return copy.requires_grad_(x.requires_grad)
""",
    "            copy = x.detach().to(device, copy=True)\n"
    "            return copy.requires_grad_(x.requires_grad)\n",
)


def _spelling(op: Any) -> str | None:
    """Returns the call of an operator of the database, if it has a public name."""
    name = op.name
    for prefix in ("torch", "torch.Tensor", "torch.ops.aten"):
        value: Any = torch
        for part in f"{prefix}.{name}".split(".")[1:]:
            value = getattr(value, part, None)
        if value is not None and value is op.op:
            return f"{prefix}.{name}"
    return None


def _tensor(tensor: Tensor) -> str | None:
    """Returns a tensor as an expression; None if it is large or special."""
    if not is_strided(tensor) or tensor.is_conj() or tensor.is_neg():
        return None
    if tensor.numel() > _LITERAL or tensor.dtype.itemsize * 8 < 8:
        return None
    value = tensor.detach()
    dtype = str(tensor.dtype)
    text = f"torch.tensor({value.tolist()!r}, dtype={dtype})"
    text = text.replace("nan", "float('nan')").replace("inf", "float('inf')")
    if tensor.numel() == 0:
        text = f"torch.empty({tuple(tensor.shape)}, dtype={dtype})"
    if tensor.stride() != torch.empty(tensor.shape).stride():
        text = (
            f"torch.empty_strided({tuple(tensor.shape)}, {tensor.stride()}, "
            f"dtype={dtype}).copy_({text})"
        )
    return text + (".requires_grad_()" if tensor.requires_grad else "")


def _expression(value: Any) -> str | None:
    """Returns a value as an expression, if it is short."""
    if isinstance(value, Tensor):
        return _tensor(value)
    if isinstance(value, list | tuple):
        parts = [_expression(each) for each in value]
        if None in parts:
            return None
        inner = ", ".join(str(each) for each in parts)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(parts) == 1 else f"({inner})"
    if isinstance(value, dict):
        items = [(key, _expression(each)) for key, each in value.items()]
        if any(each is None for _, each in items):
            return None
        return "{" + ", ".join(f"{key!r}: {each}" for key, each in items) + "}"
    if isinstance(value, torch.device):
        return f"torch.device({str(value)!r})"
    if isinstance(value, float):
        return f"float({str(value)!r})" if value != value else repr(value)
    if value is None or isinstance(value, bool | int | str | complex | slice):
        return repr(value)
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return str(value)
    return None


def program(
    call: Call, device: str, where: tuple[str, str, int], *, exact: bool = False
) -> str:
    """Writes a program for a call that differs from the CPU's.

    Args:
        call: The call.
        device: The type of the device.
        where: Operator, dtype and sample number in PyTorch's database, for arguments
            that are too large to write out.
        exact: Whether the program must fail if values are not bitwise equal to the
            CPU's.
    """
    args, kwargs = _expression(call.arguments[0]), _expression(call.arguments[1])
    spelling = _spelling(call.op) if hasattr(call.op, "op") else None
    lines = ["import torch", "from torch.utils import _pytree as pytree", ""]
    given = tensors(call.arguments)
    plain = all(is_strided(each) for each in given)
    sharing = plain and _share_memory(given)
    literal = args is not None and kwargs is not None and not sharing
    if not literal or spelling is None:
        lines += _from_database(where, call.kind)
    if literal:
        lines += [f"args = {args}", f"kwargs = {kwargs}"]
    elif plain and not sharing:
        lines += _laid_out(call)
    lines += [f"call = {spelling}"] if spelling else ["call = op"]
    lines += [f'device = "{device}"', ""]
    move = _SHARING_MOVE if sharing else _MOVE if plain else _SPARSE_MOVE
    text = "\n".join(lines) + "\n" + move + _tail(call)
    demanded = "equal_nan=True, rtol=0, atol=0" if exact else "equal_nan=True"
    return text.replace("equal_nan=True", demanded)


def _share_memory(given: list[Tensor]) -> bool:
    """Returns whether elements of tensors share memory, within one or between two."""
    storages = {each.untyped_storage()._cdata for each in given}
    return len(storages) < len(given) or any(
        size > 1 and stride == 0
        for each in given
        for size, stride in zip(each.size(), each.stride(), strict=True)
    )


def _laid_out(call: Call) -> list[str]:
    """Applies the strides and the out= of the call to the database's arguments."""
    out = call.arguments[1].get("out") if call.kind == "out=" else None
    lines = []
    written = [id(each) for each in tensors(out)]
    given = [each for each in tensors(call.arguments) if id(each) not in written]
    if not all(_is_plain(each) for each in given):
        facts = [(each.stride(), each.is_conj(), each.is_neg()) for each in given]
        lines += [f"layouts = iter({facts})", _LAY_OUT]
    if out is not None:
        made = [
            f"torch.empty_strided({tuple(each.shape)}, {each.stride()}, "
            f"dtype={each.dtype}).fill_(1)"
            for each in tensors(out)
        ]
        text = made[0] if isinstance(out, Tensor) else f"({', '.join(made)},)"
        lines += [f"kwargs = {{**kwargs, 'out': {text}}}"]
    return lines


def _is_plain(tensor: Tensor) -> bool:
    return tensor.is_contiguous() and not (tensor.is_conj() or tensor.is_neg())


_LAY_OUT = """\
def lay_out(x):
    if not isinstance(x, torch.Tensor):
        return x
    stride, conj, neg = next(layouts)
    copy = torch.empty_strided(x.shape, stride, dtype=x.dtype)
    value = x.detach().conj() if conj else x.detach()
    copy.copy_(-value if neg else value)
    copy = torch._neg_view(copy) if neg else copy
    copy = copy.conj() if conj else copy
    return copy.requires_grad_(x.requires_grad)

args, kwargs = pytree.tree_map(lay_out, (args, kwargs))"""


def _from_database(where: tuple[str, str, int], kind: str) -> list[str]:
    name, dtype, number = where
    lines = [
        "from torch.testing._internal.common_methods_invocations import op_db",
        "",
        f"op = next(each for each in op_db if each.full_name == {name!r})",
        f"torch.manual_seed({SEED})",
    ]
    if kind == "error":
        return [
            *lines,
            f"sample = list(op.error_inputs('cpu'))[{number}].sample_input",
            "args, kwargs = (sample.input, *sample.args), sample.kwargs",
        ]
    return [
        *lines,
        f"made = list(op.sample_inputs('cpu', torch.{dtype}, requires_grad="
        f"op.supports_autograd and torch.{dtype} in op.backward_dtypes"
        f" and (torch.{dtype}.is_floating_point or torch.{dtype}.is_complex)))",
        f"sample = made[{number}]",
        "args, kwargs = (sample.input, *sample.args), sample.kwargs",
    ]


def _tail(call: Call) -> str:
    if call.kind == "backward":
        return _RUN.format(body=_BACKWARD) + _COMPARE
    if call.kind == "in-place":
        return _RUN.format(body=_IN_PLACE) + _COMPARE
    if call.kind == "out=":
        return _RUN.format(body=_OUT) + _COMPARE
    if call.kind == "version":
        return _RUN.format(body=_VERSIONS) + (
            '\nprint(result, "expected", expected)\nassert result == expected\n'
        )
    if call.kind == "tangent":
        return _RUN.format(body=_TANGENT) + _COMPARE
    if call.kind == "fake":
        return _FAKE
    if call.kind == "error":
        return _ERROR
    return _RUN.format(body=_FORWARD) + _COMPARE


_RUN = """
def run(device):
    torch.manual_seed(0)
    args, kwargs = on(device)
{body}

expected, result = run("cpu"), run(device)
"""
_FORWARD = "    return call(*args, **kwargs)"
_OUT = f"""\
    if device != "cpu":
        torch.zeros({BUSY}, device=device).clone()  # keeps the device busy
    with torch.no_grad():
        return call(*args, **kwargs)"""
_IN_PLACE = """\
    name = call.__name__.removesuffix("_")
    first = pytree.tree_map(torch.clone, args[0])
    getattr(torch.Tensor, name + "_", call)(first, *args[1:], **kwargs)
    return first"""
_BACKWARD = """\
    outputs = [x for x in pytree.tree_leaves(call(*args, **kwargs))
               if isinstance(x, torch.Tensor) and x.requires_grad]
    inputs = [x for x in pytree.tree_leaves((args, kwargs))
              if isinstance(x, torch.Tensor) and x.requires_grad]
    given = []
    generator = torch.Generator().manual_seed(1)
    for x in outputs:
        ones = torch.randn(x.shape, generator=generator, dtype=torch.float64)
        given.append(ones.to(x.dtype).to(x.device))
    return torch.autograd.grad(outputs, inputs, given, allow_unused=True)"""
_VERSIONS = """\
    args, kwargs = pytree.tree_map_only(torch.Tensor, torch.Tensor.detach,
                                        (args, kwargs))
    tensors = [x for x in pytree.tree_leaves((args, kwargs))
               if isinstance(x, torch.Tensor)]
    before = [x._version for x in tensors]
    call(*args, **kwargs)
    return [x._version - n for x, n in zip(tensors, before)]"""
_TANGENT = """\
    from torch.autograd import forward_ad
    values, structure = pytree.tree_flatten((args, kwargs))
    made = []
    for i, x in enumerate(values):
        if isinstance(x, torch.Tensor) and x.is_floating_point():
            with forward_ad.dual_level():
                tangent = torch.ones_like(x)
                dual = forward_ad.make_dual(x.detach(), tangent)
                args, kwargs = pytree.tree_unflatten(
                    [*values[:i], dual, *values[i + 1:]], structure)
                for y in pytree.tree_leaves(call(*args, **kwargs)):
                    if isinstance(y, torch.Tensor):
                        made += [z for z in forward_ad.unpack_dual(y) if z is not None]
    return made"""
_FAKE = """
from torch._subclasses.fake_tensor import FakeTensorMode

args, kwargs = on(device)
real = call(*args, **kwargs)
mode = FakeTensorMode()
fake_args, fake_kwargs = pytree.tree_map_only(
    torch.Tensor, mode.from_tensor, (args, kwargs))
with mode:
    fake = call(*fake_args, **fake_kwargs)
for x, y in zip(pytree.tree_leaves(fake), pytree.tree_leaves(real)):
    if isinstance(y, torch.Tensor):
        print(x.shape, x.stride(), x.dtype, "real", y.shape, y.stride(), y.dtype)
        assert (x.shape, x.stride(), x.dtype) == (y.shape, y.stride(), y.dtype)
"""
_ERROR = """
def error_of(device):
    args, kwargs = on(device)
    try:
        pytree.tree_map_only(torch.Tensor, torch.Tensor.cpu, call(*args, **kwargs))
    except Exception as error:
        return type(error)

expected, result = error_of("cpu"), error_of(device)
print(result, "expected", expected)
assert result == expected
"""
_ALL_SAMPLES = """\
import torch
from torch.testing._internal.common_methods_invocations import op_db

op = next(each for each in op_db if each.full_name == {name!r})
for i, sample in enumerate(op.sample_inputs("cpu", torch.{dtype})):
    def move(x):
        return x.detach().to("{device}") if isinstance(x, torch.Tensor) else x

    print("sample", i, flush=True)
    sample = sample.transform(move)
    op(sample.input, *sample.args, **sample.kwargs)
"""


def all_samples(name: str, dtype: str, device: str) -> str:
    """Writes a program that calls a crashing operator on all samples."""
    return _ALL_SAMPLES.format(name=name, dtype=dtype, device=device)
