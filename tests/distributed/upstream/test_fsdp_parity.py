# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's check of FullyShardedDataParallel against DDP, with PyTorch's models."""

from __future__ import annotations

import pytest
import torch
from torch.distributed.fsdp import CPUOffload, MixedPrecision, ShardingStrategy
from torch.testing._internal import common_fsdp
from torch.testing._internal.common_fsdp import (
    AlwaysWrapNestedWrappedModule,
    DEVICEInitMode,
    FSDPInitMode,
    NestedWrappedModule,
    NonUniformReqGradNWM,
    TransformerWithSharedParams,
)
from torch.testing._internal.common_utils import (
    instantiate_parametrized_tests,
    parametrize,
)

pytestmark = [
    pytest.mark.differs_in_process("occl", run=False),
    pytest.mark.filterwarnings("default"),  # theirs
    pytest.mark.timeout(400),
]

common_fsdp.DEVICE_TYPE = "openreg"
common_fsdp.DISTRIBUTED_BACKEND = "occl"
common_fsdp.DEVICE_COUNT = 2

MODELS = [
    TransformerWithSharedParams,
    NestedWrappedModule,
    AlwaysWrapNestedWrappedModule,
    NonUniformReqGradNWM,
]
STRATEGIES = [ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP]


class TestParity(common_fsdp.FSDPTest):
    def _spawn_processes(self) -> None:
        # Forked ranks need not import torch; this process uses no device.
        self._start_processes(torch.multiprocessing.get_context("fork").Process)

    def check(self, model, strategy, when, **options) -> None:
        torch.accelerator.set_device_index(self.rank)
        self._test_fsdp_parity(
            model,
            FSDPInitMode.RECURSIVE,
            device_init_mode=when,
            sharding_strategy=strategy,
            # Needed for a parameter without a gradient.
            use_orig_params=model is NonUniformReqGradNWM,
            **options,
        )

    @parametrize("model", MODELS)
    @parametrize("strategy", STRATEGIES)
    def test_with_a_model_on_the_device(self, model, strategy):
        self.check(model, strategy, DEVICEInitMode.DEVICE_BEFORE)

    @parametrize("model", MODELS[:2])
    def test_with_a_model_that_is_moved_later(self, model):
        self.check(model, STRATEGIES[0], DEVICEInitMode.DEVICE_AFTER)

    def test_with_mixed_precision(self):
        self.check(
            MODELS[1],
            STRATEGIES[0],
            DEVICEInitMode.DEVICE_BEFORE,
            mixed_precision=MixedPrecision(torch.float16, torch.float16, torch.float16),
            enable_sharded_grad_scaler=True,
        )

    def test_with_offload(self):
        self.check(
            MODELS[1],
            STRATEGIES[0],
            DEVICEInitMode.DEVICE_BEFORE,
            cpu_offload=CPUOffload(offload_params=True),
        )


instantiate_parametrized_tests(TestParity)
