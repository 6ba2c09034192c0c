// SPDX-License-Identifier: BSD-3-Clause
// AOTInductor's runtime for the device (cuda_names/cuda.h). This text is copied
// into each model.
#pragma once

#define USE_CUDA 1
#include <torch/csrc/inductor/aoti_include/common.h>
#include <torch/csrc/inductor/aoti_runtime/model_container.h>
#undef USE_CUDA
#undef aoti_torch_device_type_cuda
#undef OPENREG_DEVICE_TYPE
