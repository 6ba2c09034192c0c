# SPDX-License-Identifier: BSD-3-Clause
"""The table of rules, the dispatcher and CUDA's rules agree, operator by operator."""

from __future__ import annotations

import collections

import pytest
import torch

import openreg_amp

# Operators that only cuDNN has: no other device has a kernel to cast for.
CUDNN = {"aten::cudnn_convolution", "aten::cudnn_convolution_transpose"}


def registered(key):
    return set(torch._C._dispatch_get_registrations_for_dispatch_key(key))


def test_rules_are_what_the_dispatcher_has():
    listed = [operator for operator, _ in openreg_amp.rules()]
    assert len(listed) == len(set(listed))
    assert set(listed) == registered("AutocastPrivateUse1")


def test_rules_cover_the_operators_of_cuda_and_no_others():
    assert registered("AutocastPrivateUse1") == registered("AutocastCUDA") - CUDNN
    assert registered("AutocastCUDA") >= CUDNN


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


def test_main_names_what_it_accepts(run_python):
    result = run_python(
        "import runpy, sys; sys.argv = ['openreg_amp', 'rulez'];"
        "runpy.run_module('openreg_amp', run_name='__main__')"
    )
    assert result.returncode == 2
    assert "invalid choice: 'rulez'" in result.stderr
