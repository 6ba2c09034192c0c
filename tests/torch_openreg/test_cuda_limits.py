# SPDX-License-Identifier: BSD-3-Clause
"""OPENREG_CUDA_LIMITS=1: refuses what CUDA refuses, with CUDA's messages."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import torch

from support.programs import Program, variables

Limited = Callable[..., Any]

# Calls f, and returns the type and the first line of its error, or None.
_PRELUDE = """
import json, warnings
import torch
import torch.nn.functional as F

def error(f):
    try:
        f()
    except Exception as error:
        return [type(error).__name__, str(error).partition(chr(10))[0]]

shown = {}
"""


@pytest.fixture
def limited(fork: Program) -> Limited:
    """Runs source with the limits, and returns the contents of ``shown``."""

    def start(source: str, **environment: str) -> Any:
        settings = {"OPENREG_CUDA_LIMITS": "1"} | environment
        result = fork(
            source=_PRELUDE + textwrap.dedent(source) + "\nprint(json.dumps(shown))",
            environment=variables(**settings),
        )
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout.splitlines()[-1])

    return start


def missing(name: str, dtype: str) -> list[str]:
    return ["NotImplementedError", f"\"{name}\" not implemented for '{dtype}'"]


PRODUCTS = """
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float32"):
        m = torch.ones(2, 2, device="openreg").to(getattr(torch, name))
        v = m[0]
        b = m[None]
        shown[name] = {
            "mm": error(lambda: m @ m),
            "mm_out": error(lambda: torch.mm(m, m, out=m.clone())),
            "addmm": error(lambda: torch.addmm(m, m, m)),
            "addmm_": error(lambda: m.clone().addmm_(m, m)),
            "bmm": error(lambda: torch.bmm(b, b)),
            "baddbmm": error(lambda: torch.baddbmm(b, b, b)),
            "addbmm": error(lambda: torch.addbmm(m, b, b)),
            "mv": error(lambda: m @ v),
            "addmv": error(lambda: torch.addmv(v, m, v)),
            "dot": error(lambda: v @ v),
            "vdot": error(lambda: torch.vdot(v, v)),
            "linear": error(lambda: F.linear(m, m, v)),
            "einsum": error(lambda: torch.einsum("ij,jk->ik", m, m)),
            "tensordot": error(lambda: torch.tensordot(m, m, 1)),
        }
"""
WORDS = {
    "mm": "addmm_cuda",
    "mm_out": "addmm_cuda",
    "addmm": "addmm_cuda",
    "addmm_": "addmm_cuda",
    "bmm": "baddbmm_cuda",
    "baddbmm": "baddbmm_cuda",
    "addbmm": "addmm_cuda",
    "mv": "addmv_impl_cuda",
    "addmv": "addmv_impl_cuda",
    "dot": "dot",
    "vdot": "dot",
    "linear": "addmm_cuda",
    "einsum": "baddbmm_cuda",
    "tensordot": "addmm_cuda",
}
NAMES = {
    "bool": "Bool",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
}


def test_products_of_integers_are_refused_in_the_words_of_cuda(
    limited: Limited,
) -> None:
    shown = limited(PRODUCTS)
    assert set(shown.pop("float32").values()) == {None}
    for dtype, errors in shown.items():
        assert errors == {
            call: missing(name, NAMES[dtype]) for call, name in WORDS.items()
        }


def test_without_the_setting_nothing_is_refused(limited: Limited) -> None:
    source = """
        m = torch.ones(2, 2, device="openreg", dtype=torch.int64)
        shown["mm"] = (m @ m).tolist()
        torch.use_deterministic_algorithms(True)
        x = torch.rand(1, 1, 5, device="openreg", requires_grad=True)
        shown["pad"] = error(lambda: F.pad(x, (1, 1), mode="reflect").sum().backward())
        torch.use_deterministic_algorithms(False)
        bad = torch.tensor([9], device="openreg")
        shown["index"] = error(lambda: F.embedding(bad, m.float()))
        shown["after"] = (m + m).tolist()
    """
    assert limited(source, OPENREG_CUDA_LIMITS="0") == {
        "mm": [[2, 2], [2, 2]],
        "pad": None,
        "index": ["IndexError", "index out of range in self"],
        "after": [[2, 2], [2, 2]],
    }


def test_products_without_elements_and_wrong_sizes_are_as_on_cuda(
    limited: Limited,
) -> None:
    shown = limited(
        """
        m = torch.ones(2, 3, device="openreg", dtype=torch.int64)
        shown["empty"] = (m[:, :0] @ m[:0]).tolist()
        shown["sizes"] = error(lambda: m @ m)
        shown["dtypes"] = error(lambda: m @ m.float().t())
        """
    )
    assert shown["empty"] == [[0, 0, 0], [0, 0, 0]]
    for name, other in (("sizes", torch.int64), ("dtypes", torch.float32)):
        m = torch.ones(2, 3, dtype=torch.int64)
        n = m if name == "sizes" else m.to(other).t()
        with pytest.raises(RuntimeError) as raised:
            m @ n
        assert shown[name] == ["RuntimeError", str(raised.value).partition("\n")[0]]


def test_convolutions_of_integers_are_refused(limited: Limited) -> None:
    shown = limited(
        """
        for d in (1, 2, 3):
            x = torch.ones(1, 2, *[4] * d, device="openreg", dtype=torch.int64)
            w = torch.ones(2, 2, *[1] * d, device="openreg", dtype=torch.int64)
            conv = getattr(F, f"conv{d}d")
            transposed = getattr(F, f"conv_transpose{d}d")
            shown[f"conv{d}d"] = error(lambda: conv(x, w))
            shown[f"conv_transpose{d}d"] = error(lambda: transposed(x, w))
            shown[f"depthwise{d}d"] = error(lambda: conv(x, w[:, :1], groups=2))
        shown["int32"] = error(lambda: conv(x.int(), w.int()))
        shown["float"] = error(lambda: conv(x.float(), w.float()))
        """
    )
    cudnn = ["RuntimeError", "getCudnnDataTypeFromScalarType() not supported for Long"]
    depthwise = missing("conv_depthwise2d_forward_cuda", "Long")
    engine = "GET was unable to find an engine to execute this computation"
    assert shown == {
        **{f"conv{d}d": cudnn for d in (1, 2, 3)},
        **{f"conv_transpose{d}d": cudnn for d in (1, 2, 3)},
        "depthwise1d": depthwise,
        "depthwise2d": depthwise,
        "depthwise3d": missing("conv_depthwise3d", "Long"),
        "int32": ["RuntimeError", engine],
        "float": None,
    }


# Calls that must raise, and the operator name in the error.
ALERTS = {
    "F.adaptive_avg_pool2d(r(1, 1, 6, 6), 2)": "adaptive_avg_pool2d_backward_cuda",
    "F.adaptive_avg_pool3d(r(1, 1, 6, 6, 6), 2)": "adaptive_avg_pool3d_backward_cuda",
    "F.adaptive_max_pool2d(r(1, 1, 6, 6), 2)": "adaptive_max_pool2d_backward_cuda",
    "F.adaptive_max_pool3d(r(1, 1, 6, 6, 6), 2)": "adaptive_max_pool3d_backward_cuda",
    "F.avg_pool3d(r(1, 1, 6, 6, 6), 2)": "avg_pool3d_backward_cuda",
    "torch.bincount(i(3), r(3).detach())": "_bincount_cuda",
    "F.ctc_loss(r(5, 1, 3).log_softmax(-1), i(1, 2) + 1, (5,), (2,))": (
        "ctc_loss_backward_gpu"
    ),
    "F.embedding_bag(i(1, 2), r(3, 4), mode='max')": "embedding_bag_backward_cuda_max",
    "F.fractional_max_pool2d(r(1, 1, 6, 6), 2, 2)": (
        "fractional_max_pool2d_backward_cuda"
    ),
    "F.fractional_max_pool3d(r(1, 1, 6, 6, 6), 2, 2)": (
        "fractional_max_pool3d_backward_cuda"
    ),
    "F.grid_sample(r(1, 1, 4, 4), r(1, 2, 2, 2), align_corners=False)": (
        "grid_sampler_2d_backward_cuda"
    ),
    "F.grid_sample(r(1, 1, 4, 4, 4), r(1, 2, 2, 2, 3), align_corners=True)": (
        "grid_sampler_3d_backward_cuda"
    ),
    "torch.histc(r(4).detach())": "_histc_cuda with floating point input",
    "r(4).detach().index_reduce(0, i(2), r(2).detach(), 'prod')": "index_reduce_cuda",
    "r(4).median(0).values": "median CUDA with indices output",
    "r(4).nanmedian(0).values": "median CUDA with indices output",
    "F.nll_loss(r(1, 3, 2, 2), i(1, 2, 2))": "nll_loss2d_forward_out_cuda_template",
    "F.cross_entropy(r(1, 3, 2, 2), i(1, 2, 2))": (
        "nll_loss2d_forward_out_cuda_template"
    ),
    "r(4).detach().put_(i(2), r(2).detach(), accumulate=True)": "put_",
    "r(4).detach().put_(i(2), r(2).detach())": "put_",
    "F.pad(r(1, 1, 5), (1, 1), mode='reflect')": "reflection_pad1d_backward_out_cuda",
    "F.pad(r(1, 1, 5, 5), (1, 1, 1, 1), mode='reflect')": (
        "reflection_pad2d_backward_cuda"
    ),
    "F.pad(r(1, 1, 5, 5, 5), (1, 1, 1, 1, 1, 1), mode='reflect')": (
        "reflection_pad3d_backward_out_cuda"
    ),
    "r(4).detach().scatter(0, i(2), r(2).detach(), reduce='multiply')": (
        "scatter_reduce_cuda_kernel"
    ),
    "i(4).scatter(0, i(2), i(2), reduce='add')": "scatter_reduce_cuda_kernel",
    "r(4).detach().scatter_reduce(0, i(2), r(2).detach(), 'prod')": (
        "scatter_reduce_cuda_prod_"
    ),
    "F.interpolate(r(1, 1, 4), 8, mode='linear')": (
        "upsample_linear1d_backward_out_cuda"
    ),
    "torch._C._nn.upsample_bicubic2d(r(1, 1, 4, 4), (8, 8), False)": (
        "upsample_bicubic2d_backward_out_cuda"
    ),
    "F.interpolate(r(1, 1, 4, 4), 8, mode='bilinear', antialias=True)": (
        "upsample_bilinear2d_aa_backward_out_cuda"
    ),
    "F.interpolate(r(1, 1, 4, 4), 8, mode='bicubic', antialias=True)": (
        "upsample_bicubic2d_aa_backward_out_cuda"
    ),
    "torch._C._nn.upsample_bilinear2d(r(1, 1, 4, 4), (8, 8), False)": (
        "upsample_bilinear2d_backward_out_cuda"
    ),
    "torch._C._nn.upsample_trilinear3d(r(1, 1, 4, 4, 4), (8, 8, 8), False)": (
        "upsample_trilinear3d_backward_out_cuda"
    ),
    "F.max_unpool2d(r(1, 1, 2, 2), i(1, 1, 2, 2), 2)": "max_unpooling2d_forward_out",
}
# Calls that CUDA computes deterministically.
QUIET = [
    "r(4).cumsum(0)",
    "i(4).scatter_add(0, i(2), i(2))",
    "r(4).detach().scatter(0, i(2), r(2).detach())",
    "r(4).detach().scatter(0, i(2), r(2).detach(), reduce='add')",
    "r(4).detach().scatter_reduce(0, i(2), r(2).detach(), 'sum')",
    "r(4).detach().index_add(0, i(2), r(2).detach())",
    "r(4).gather(0, i(2))",
    "r(4)[i(2)]",
    "r(4).median()",
    "r(4).kthvalue(2).values",
    "torch.bincount(i(3))",
    "torch.histc(torch.arange(3, device='openreg'))",
    "F.embedding(i(2), r(3, 4))",
    "F.embedding_bag(i(1, 2), r(3, 4), mode='mean')",
    "F.nll_loss(r(2, 3), i(2))",
    "F.interpolate(r(1, 1, 4, 4), 8, mode='bilinear')",
    "F.interpolate(r(1, 1, 4, 4, 4), 8, mode='trilinear')",
    "F.interpolate(r(1, 1, 4, 4), 8, mode='nearest')",
    "F.grid_sample(r(1, 1, 4, 4), r(1, 2, 2, 2), align_corners=True)",
    "F.avg_pool2d(r(1, 1, 6, 6), 2)",
    "F.max_pool2d(r(1, 1, 6, 6), 2)",
    "F.conv2d(r(1, 1, 6, 6), r(1, 1, 3, 3))",
    "r(3, 3) @ r(3, 3)",
]
DETERMINISM = f"""
    def r(*sizes):
        return torch.rand(sizes, device="openreg", requires_grad=True)

    def i(*sizes):
        return torch.zeros(sizes, device="openreg", dtype=torch.int64)

    def trains(text):
        result = eval(text)
        if result.requires_grad:
            result.sum().backward()

    programs = {[*ALERTS, *QUIET]!r}
    torch.use_deterministic_algorithms(True)
    shown["raised"] = {{text: error(lambda: trains(text)) for text in programs}}
    torch.use_deterministic_algorithms(True, warn_only=True)
    shown["warned"] = {{}}
    for text in programs:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            trains(text)
        shown["warned"][text] = [
            str(each.message) for each in seen if "deterministic" in str(each.message)
        ]
"""


@pytest.mark.parametrize("inline_bytes", ["0", "65536"])
def test_operators_without_a_deterministic_implementation_are_refused(
    limited: Limited, inline_bytes: str
) -> None:
    shown = limited(DETERMINISM, OPENREG_INLINE_BYTES=inline_bytes)
    for text, name in ALERTS.items():
        kind, words = shown["raised"][text] or (None, "")
        assert kind == "RuntimeError", text
        assert words.startswith(
            f"{name} does not have a deterministic implementation, but you set"
            " 'torch.use_deterministic_algorithms(True)'."
        ), text
        warned = shown["warned"][text]
        assert warned, text
        assert warned[0].startswith(
            f"{name} does not have a deterministic implementation, but you set"
            " 'torch.use_deterministic_algorithms(True, warn_only=True)'."
        ), text
    for text in QUIET:
        assert shown["raised"][text] is None, text
        assert shown["warned"][text] == [], text


# Calls that assert on CUDA, and the CPU's errors.
ASSERTIONS = {
    "F.embedding(bad, x)": "index out of range in self",
    "F.embedding_bag(bad[None], x)": "which is not in the valid range [0, 3)",
    "x[bad]": "index 9 is out of bounds for dimension 0 with size 3",
    "x.index_put_((bad,), y)": "index 9 is out of bounds for dimension 0 with size",
    "x.index_select(0, bad)": "index out of range in self",
    "x.index_add(0, bad, y)": "index 9 is out of bounds",
    "x.index_copy_(0, bad, y)": "index 9 is out of bounds",
    "x.index_fill_(0, bad, 1.0)": "index 9 is out of bounds",
    "x.gather(0, bad[None])": "index 9 is out of bounds",
    "x.scatter(0, bad[None], y)": "index 9 is out of bounds",
    "x.scatter_(0, bad[None], 1.0)": "index 9 is out of bounds",
    "x.scatter_add(0, bad[None], y)": "index 9 is out of bounds",
    "x.take(bad * 9)": "out of range: tried to access index 81",
    "F.nll_loss(x[:1], bad)": "Target 9 is out of bounds",
    "F.cross_entropy(x[:1], bad)": "Target 9 is out of bounds",
    "F.nll_loss(x[:1, :, None, None], bad[:, None, None])": "Target 9 is out of bounds",
    "F.multi_margin_loss(x[:1], bad)": "target out of range",
    "torch.bernoulli(x + 2)": "Expected p_in >= 0 && p_in <= 1",
    "F.binary_cross_entropy(x + 2, x)": "should be between 0 and 1",
    "x.masked_scatter_(x == x, y)": "Number of elements of source < number",
    "torch._assert_async(x.sum() * 0)": "Expected Tensor with single nonzero value",
}
# The device is reset after each.
LOSSES = f"""
    for text in {list(ASSERTIONS)!r}:
        x = torch.rand(3, 4, device="openreg")
        y = torch.rand(1, 4, device="openreg")
        other = torch.rand(2, device="openreg:1")
        bad = torch.tensor([9], device="openreg")
        torch.openreg.synchronize()
        shown[text] = [
            error(lambda: eval(text)),
            error(torch.openreg.synchronize),
            error(lambda: torch.ones(2, device="openreg") + 1),
            error(lambda: x.tolist()),
            error(lambda: (other + 1).tolist()),
        ]
        torch.openreg.reset_device()
        shown[text].append((torch.ones(2, device="openreg") + 1).tolist())
"""


@pytest.mark.parametrize("inline_bytes", ["0", "65536"])
def test_index_out_of_range_is_a_late_assertion_that_fails_the_device(
    limited: Limited, inline_bytes: str
) -> None:
    shown = limited(LOSSES, OPENREG_INLINE_BYTES=inline_bytes)
    for text, words in ASSERTIONS.items():
        call, *later, other_device, after_reset = shown[text]
        assert call is None, text
        for each in later:
            kind, message = each or (None, "")
            assert kind == "AcceleratorError", (text, each)
            assert "device-side assert triggered" in message, text
            assert words in message, text
        assert other_device is None, text
        assert after_reset == [2.0, 2.0], text


def test_wrong_size_of_repeats_is_a_late_assertion(limited: Limited) -> None:
    shown = limited(
        """
        repeats = torch.tensor([9], device="openreg")
        shown["call"] = error(lambda: torch.repeat_interleave(repeats, output_size=2))
        shown["wait"] = error(torch.openreg.synchronize)
        torch.openreg.reset_device()
        """,
        OPENREG_INLINE_BYTES="0",
    )
    assert shown["call"] is None
    kind, message = shown["wait"]
    assert kind == "AcceleratorError"
    assert "device-side assert triggered" in message
    assert "allocated size does not match required size" in message


def test_assertion_is_the_calls_error_where_launches_block(limited: Limited) -> None:
    shown = limited(
        """
        x = torch.rand(3, 4, device="openreg")
        bad = torch.tensor([9], device="openreg")
        shown["call"] = error(lambda: F.embedding(bad, x))
        shown["later"] = error(lambda: x.tolist())
        """,
        OPENREG_LAUNCH_BLOCKING="1",
    )
    for kind, message in shown.values():
        assert kind == "AcceleratorError"
        assert "device-side assert triggered" in message


def test_results_of_a_failed_call_have_their_metadata(limited: Limited) -> None:
    shown = limited(
        """
        x = torch.rand(3, 4, device="openreg", dtype=torch.float64)
        bad = torch.tensor([[9, 0]], device="openreg")
        made = F.embedding(bad, x)
        shown["made"] = [list(made.shape), str(made.dtype), str(made.device)]
        """
    )
    assert shown == {"made": [[1, 2, 4], "torch.float64", "openreg:0"]}


def test_wrong_value_of_the_setting_names_it(fork: Program) -> None:
    result = fork(
        source="import torch_openreg",
        environment=variables(OPENREG_CUDA_LIMITS="yes"),
    )
    assert result.returncode != 0
    text = "OPENREG_CUDA_LIMITS='yes' is not valid: expected 0 or 1"
    assert text in result.stderr


def test_page_is_that_of_the_table(load_tool: Callable[[str], Any]) -> None:
    tool = load_tool("cuda_limits")
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page()


def test_table_is_sorted_and_names_operators(load_tool: Callable[[str], Any]) -> None:
    rows = load_tool("cuda_limits").rows()
    by_kind: dict[str, list[str]] = {}
    for kind, (name, *_) in rows:
        section = "DTYPES" if kind.endswith("DTYPES") else kind
        by_kind.setdefault(section, []).append(name)
        operator, _, overload = name.partition(".")
        found = [
            getattr(torch.ops.aten, each, None) for each in (operator, f"{operator}_")
        ]
        assert any(found), name
        assert not overload or any(
            packet is not None and overload in packet.overloads() for packet in found
        ), name
    for section, names in by_kind.items():
        assert names == sorted(names), section
