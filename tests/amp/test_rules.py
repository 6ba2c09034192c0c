# SPDX-License-Identifier: BSD-3-Clause
"""The table of rules, the dispatcher and CUDA's rules agree, operator by operator."""

from __future__ import annotations

import collections
import re
from pathlib import Path

import pytest
import torch

import openreg_amp
from support.programs import ROOT

# CUDA's registrations that are in no list of the header. They are operators of cuDNN,
# without kernels for other devices: only on CUDA does `convolution` call them.
CUDNN = {
    "aten::cudnn_convolution",
    "aten::cudnn_convolution_transpose",
    "aten::_cudnn_rnn",  # since torch 2.14, in CUDA builds
} & set(torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA"))
# The other registrations of CUDA that are in no list of the header.
OF_CUDA = {
    ("aten::linalg_matrix_sqrth", "fp32"),  # since torch 2.14
} & {(operator, "fp32") for operator in torch._C._dispatch_get_all_op_names()}
# The only operator without a casting rule, which PyTorch bans separately.
BANNED = ("aten::binary_cross_entropy", "banned")

# PyTorch's lists, which all of its devices share, by their macros.
HEADER = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
LISTS = {
    "AT_FORALL_LOWER_PRECISION_FP": "lower_precision_fp",
    "AT_FORALL_FP32": "fp32",
    "AT_FORALL_FP32_SET_OPT_DTYPE": "fp32_set_opt_dtype",
    "AT_FORALL_PROMOTE": "promote",
}
RULES = ROOT / "packages" / "openreg-amp" / "csrc" / "rules.def"
DIFFERENT = "AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE"


def macros() -> dict[str, str]:
    """Reads the header: the text of each list by the name of its macro."""
    text = HEADER.read_text(encoding="utf-8").replace("\\\n", " ")
    return dict(re.findall(r"^#define (AT_FORALL_\w+)\(_\) *(.*)$", text, re.MULTILINE))


def rules_of_pytorch() -> list[tuple[str, str]]:
    """Lists every operator of the header with the policy of its list."""
    text = macros()
    rules = [
        (f"aten::{operator}" + (f".{overload}" if overload else ""), policy)
        for macro, policy in LISTS.items()
        for operator, overload in re.findall(r"_\((\w+)(?:, *(\w+))?\)", text[macro])
    ]
    entries = re.findall(r'"([\w.]+)",.*?,\s*(fp32_\w+)\)', text[DIFFERENT])
    return rules + [(f"aten::{name}", policy) for name, policy in entries]


def own_rules() -> list[tuple[str, str]]:
    """Reads rules.def: its rules for operators that are in no list of PyTorch's."""
    lines = re.findall(
        r"^OPENREG_RULE\((\w+)(?:, (\w+))?, (\w+)\)$", RULES.read_text(), re.MULTILINE
    )
    return [
        (f"aten::{operator}" + (f".{overload}" if overload else ""), policy)
        for operator, overload, policy in lines
    ]


def registered(key):
    return set(torch._C._dispatch_get_registrations_for_dispatch_key(key))


def test_rules_match_the_kernels_of_the_dispatcher():
    listed = [operator for operator, _ in openreg_amp.rules()]
    assert len(listed) == len(set(listed))
    assert set(listed) == registered("AutocastPrivateUse1")


def test_rules_cover_the_operators_of_cuda_and_those_of_rules_def():
    own = {operator for operator, _ in own_rules()}
    cudas = registered("AutocastCUDA") - CUDNN
    assert registered("AutocastPrivateUse1") == cudas | own
    assert not own & cudas
    assert {"aten::cudnn_convolution", "aten::cudnn_convolution_transpose"} <= CUDNN


def test_rules_and_policies_are_those_of_the_header_and_of_rules_def() -> None:
    expected = [*rules_of_pytorch(), *OF_CUDA, *own_rules()]
    assert len(expected) == len(set(expected)) > 100
    assert set(openreg_amp.rules()) == {*expected, BANNED}


def test_lists_of_the_header_are_all_read() -> None:
    deprecated = {"AT_FORALL_DEPRECATED_AUTOCAST_BACKENDS"}
    assert macros().keys() == LISTS.keys() | {DIFFERENT} | deprecated


def test_lists_of_the_header_are_all_of_cuda() -> None:
    listed = {operator for operator, _ in [*rules_of_pytorch(), *OF_CUDA, BANNED]}
    assert registered("AutocastCUDA") == listed | CUDNN


@pytest.mark.parametrize(
    ("operator", "policy"),
    [
        ("aten::mm", "lower_precision_fp"),
        ("aten::conv_transpose2d.input", "lower_precision_fp"),
        ("aten::scaled_dot_product_attention", "lower_precision_fp"),
        ("aten::exp", "fp32"),
        ("aten::pow.Tensor_Scalar", "fp32"),
        ("aten::layer_norm", "fp32"),
        ("aten::softmax.int", "fp32_set_opt_dtype"),
        ("aten::sum.dim_IntList", "fp32_set_opt_dtype"),
        ("aten::norm.Scalar", "fp32_append_dtype"),
        ("aten::index_put", "promote"),
        ("aten::binary_cross_entropy", "banned"),
    ],
)
def test_rules_name_the_policy(operator, policy):
    assert dict(openreg_amp.rules())[operator] == policy


def test_rules_use_the_policies_of_pytorch():
    policies = collections.Counter(policy for _, policy in openreg_amp.rules())
    assert policies.keys() == {
        "lower_precision_fp",
        "fp32",
        "fp32_set_opt_dtype",
        "fp32_append_dtype",
        "promote",
        "banned",
    }
    assert policies["banned"] == 1


def test_main_prints_every_rule(run_python):
    result = run_python(
        "import runpy, sys; sys.argv = ['openreg_amp', 'rules'];"
        "runpy.run_module('openreg_amp', run_name='__main__')"
    )
    assert result.returncode == 0, result.stderr
    rows = [tuple(line.split()) for line in result.stdout.splitlines()]
    assert rows == openreg_amp.rules()


def test_main_names_accepted_values(run_python):
    result = run_python(
        "import runpy, sys; sys.argv = ['openreg_amp', 'rulez'];"
        "runpy.run_module('openreg_amp', run_name='__main__')"
    )
    assert result.returncode == 2
    assert "invalid choice: 'rulez'" in result.stderr
