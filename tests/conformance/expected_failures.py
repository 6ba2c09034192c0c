# SPDX-License-Identifier: BSD-3-Clause
"""What differs from the CPU because PyTorch leaves a device no other way."""

from __future__ import annotations

import dataclasses
import fnmatch


@dataclasses.dataclass(frozen=True)
class ExpectedFailure:
    """Checks that fail.

    Attributes:
        cases: Patterns of the names of cases, such as ``"abs-float32"`` or ``"abs-*"``.
        checks: Which checks of them fail.
        reason: What differs.
        limit: What in PyTorch is behind it.
        always: Whether it fails in every run over all samples.
    """

    cases: tuple[str, ...]
    checks: tuple[str, ...]
    reason: str
    limit: str
    always: bool = True

    def names(self, case: str) -> bool:
        """Whether a case is one of these."""
        return any(fnmatch.fnmatchcase(case, pattern) for pattern in self.cases)


# Results that are equal up to rounding; all others have the bits of the CPU's.
ROUNDING = {
    "linalg.lstsq*": "The CPU's default driver reads pivots that PyTorch has not set, "
    "and differs between two runs on the CPU.",
    "linalg.pinv.singular-float64": "One gradient of a negative view, in its last bit, "
    "which on the CPU, too, depends on where the operands lie in memory.",
    "nn.functional.linear_cross_entropy.chunked*-*float16": "The loss is summed up in "
    "other steps than on the CPU: see the expected failure below.",
    "nn.LinearCrossEntropyLoss-*float16-*": "As linear_cross_entropy.",
}


def rounding_reason(case: str) -> str | None:
    """Why results of a case may differ from the CPU's in the last bits, if they may."""
    for pattern, reason in ROUNDING.items():
        if fnmatch.fnmatchcase(case, pattern):
            return reason
    return None


EXPECTED_FAILURES = [
    ExpectedFailure(
        cases=("SGD-bfloat16", "SGD-float16"),
        checks=("forward",),
        reason="The momentum of fused SGD depends on what lies behind it in memory.",
        limit="The CPU's kernel loads a momentum of 16 bits as if it had 32, past its "
        "end. On the CPU, too, other bytes behind it change the last four elements.",
        always=False,
    ),
    ExpectedFailure(
        cases=(
            "nn.functional.linear_cross_entropy.chunked*-*float16",
            "nn.LinearCrossEntropyLoss-*float16-*",
        ),
        checks=("forward", "backward"),
        reason="The loss is summed up in other steps than on the CPU.",
        limit="The options of linear_cross_entropy look their defaults up in a table "
        "of device types, which has no entry for PrivateUse1.",
        always=False,
    ),
    ExpectedFailure(
        cases=("conj-complex32", "H-complex32", "mH-complex32"),
        checks=("forward",),
        reason="The conjugate of a negative view cannot be copied to be compared.",
        limit="The CPU's copy has no neg_conj kernel for ComplexHalf: clone() of such "
        "a tensor fails on the CPU, too.",
    ),
    ExpectedFailure(
        cases=("linalg.matrix_rank*", "tensordot-*"),
        checks=("version",),
        reason="An out= tensor without size is written twice, as on CUDA.",
        limit="On every device but the CPU, at::native::resize_output calls resize_ "
        "as an operator, which counts.",
        always=False,
    ),
    ExpectedFailure(
        cases=("nonzero_static-*",),
        checks=("fake",),
        reason="FakeTensorMode has the strides of CUDA's nonzero_static.",
        limit="torch._meta_registrations.nonzero_static lists the devices that are "
        "not like CUDA: cpu, mps and xpu.",
    ),
    ExpectedFailure(
        cases=("nn.functional.pixel_shuffle-*", "nn.functional.pixel_unshuffle-*"),
        checks=("fake",),
        reason="FakeTensorMode has contiguous results for channels last.",
        limit="The meta kernel of pixel_shuffle keeps channels last for the CPU alone.",
    ),
    ExpectedFailure(
        cases=("*native_batch_norm*", "batch norm in evaluation"),
        checks=("fake",),
        reason="FakeTensorMode gives batch norm in evaluation a mean and a deviation.",
        limit="torch._decomp's native_batch_norm_helper gives the CPU's empty results "
        "to the CPU alone.",
        always=False,
    ),
    ExpectedFailure(
        cases=("batch norm in bfloat16", "layer norm in bfloat16"),
        checks=("fake",),
        reason="FakeTensorMode has mean and deviation in float32, as CUDA does.",
        limit="native_batch_norm_helper and torch._refs.native_layer_norm convert "
        "them to the input's dtype for the CPU alone (and MTIA).",
    ),
    ExpectedFailure(
        cases=("embedding bag of sums", "embedding bag of means"),
        checks=("fake",),
        reason="FakeTensorMode has the sizes that CUDA's _embedding_bag gives to what "
        "only a backward pass reads.",
        limit="meta_embedding_bag has the CPU's sizes for the CPU alone.",
    ),
    ExpectedFailure(
        cases=("nn.functional.dropout-*",),
        checks=("fake",),
        reason="FakeTensorMode has contiguous gradients of dropout.",
        limit="The decomposition of native_dropout_backward makes them contiguous, the "
        "CPU's kernel does not. On the CPU dropout is a product.",
        always=False,
    ),
    ExpectedFailure(
        cases=("lstm without biases",),
        checks=("fake",),
        reason="FakeTensorMode cannot run the fused cell of an LSTM without biases.",
        limit="rnn_cell_checkSizes in torch._meta_registrations asks biases that are "
        "None for their device.",
    ),
    ExpectedFailure(
        cases=("torch._scaled_mm_v2-*",),
        checks=("fake",),
        reason="FakeTensorMode does not refuse scales with gaps.",
        limit="_check_scaled_mm_sizes_v2 checks for the devices cpu, cuda and xpu.",
        always=False,
    ),
]


def is_expected_to_fail(case: str, check: str) -> bool:
    """Whether a check of a case may fail."""
    return any(each.names(case) and check in each.checks for each in EXPECTED_FAILURES)
