# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile: captured graphs, autograd in them, and Inductor."""

import torch

from openreg_conformance.case import Suite

_suite = Suite(__name__)
case, cases = _suite.case, _suite.cases


def network(x, weight):
    y = torch.nn.functional.gelu(x @ weight) + x.sum(1, keepdim=True)
    return y.softmax(1) * torch.ones_like(y).cumsum(0)


def compare(device, backend, **options):
    torch._dynamo.reset()
    torch.manual_seed(0)
    x, weight = torch.randn(8, 6), torch.randn(6, 6)
    compiled = torch.compile(network, backend=backend, fullgraph=True, **options)
    found = []
    for where, call in (("cpu", network), (device, compiled)):
        mine = weight.detach().clone().to(where).requires_grad_()
        result = call(x.to(where), mine)
        result.square().sum().backward()
        found.append((result.detach().cpu(), mine.grad.cpu()))
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)


@case("dynamo")
def graphs_are_captured(device):
    """torch.compile with the backend "eager" captures a network in one graph."""
    compare(device, "eager")


@case("dynamo", subject="AOT autograd", level="sample")
def graphs_have_backward_passes(device):
    """torch.compile with the backend "aot_eager" traces forward and backward."""
    compare(device, "aot_eager")


@case("inductor", level="sample")
def inductor_compiles(device):
    """torch.compile with Inductor gives the CPU's values and gradients."""
    compare(device, "inductor")


@case("dynamo", subject="sizes that change", level="sample", users=0.2)
def sizes_may_change(device):
    """A graph with sizes that are not fixed serves several."""
    torch._dynamo.reset()
    call = torch.compile(lambda x: (x * 2).sum(0), backend="aot_eager", dynamic=True)
    for size in (3, 5, 8):
        assert call(torch.ones(size, 2, device=device)).tolist() == [2 * size] * 2
