// SPDX-License-Identifier: BSD-3-Clause
// Preparations for operators that need more than a cast to compute in a wider
// dtype.
#include "base/keys.h"
#include "base/mechanism.h"
#include "kernel/boxed.h"
#include "kernel/wider.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/fft_fft2_ops.h>
#include <ATen/ops/fft_fft_ops.h>
#include <ATen/ops/fft_fftn_ops.h>
#include <ATen/ops/fft_hfft2_ops.h>
#include <ATen/ops/fft_hfft_ops.h>
#include <ATen/ops/fft_hfftn_ops.h>
#include <ATen/ops/fft_ifft2_ops.h>
#include <ATen/ops/fft_ifft_ops.h>
#include <ATen/ops/fft_ifftn_ops.h>
#include <ATen/ops/fft_ihfft2_ops.h>
#include <ATen/ops/fft_ihfft_ops.h>
#include <ATen/ops/fft_ihfftn_ops.h>
#include <ATen/ops/fft_irfft2_ops.h>
#include <ATen/ops/fft_irfft_ops.h>
#include <ATen/ops/fft_irfftn_ops.h>
#include <ATen/ops/fft_rfft2_ops.h>
#include <ATen/ops/fft_rfft_ops.h>
#include <ATen/ops/fft_rfftn_ops.h>
#include <torch/library.h>

#include <cmath>
#include <string_view>
#include <utility>

namespace openreg::aten {
namespace {

using torch::jit::Stack;

/// CUDA computes the bin of an integer with integers, as the integral part of
/// (x - min) * bins / (max - min). In floating point, some integral quotients
/// come out smaller. The range therefore starts earlier by half of 1 / bins.
/// Quotients grow by less than their distance to the next integer. They grow by
/// more than their rounding error if (max - min)^2 * bins is less than 2^50.
void place_between_integers(c10::OperatorHandle&, Stack& stack, size_t base) {
  const at::Tensor self = stack[base].toTensor();
  const auto bins = static_cast<double>(stack[base + 1].toInt());
  double min = std::trunc(stack[base + 2].toScalar().toDouble());
  double max = std::trunc(stack[base + 3].toScalar().toDouble());
  if (min == max && self.numel() > 0) {
    const auto [least, greatest] = at::aminmax(self);
    min = least.item<double>();
    max = greatest.item<double>();
    if (min == max) {
      --min;
      ++max;
    }
  }
  if (bins > 0 && min < max) {
    stack[base + 2] = c10::Scalar(min - 0.5 / bins);
    stack[base + 3] = c10::Scalar(max);
  }
}

/// The CPU rejects complex numbers here, in every dtype.
void sum_without_nan(c10::OperatorHandle& op, Stack& stack, size_t base) {
  const at::Tensor self = stack[base].toTensor();
  stack[base] = self.masked_fill(self.isnan(), 0);
  op = c10::Dispatcher::singleton().findSchemaOrThrow(
      "aten::sum",
      op.operator_name().overload_name.empty() ? "dim_IntList" : "IntList_out");
}

/// The kernel of a composite operator that checks its device before it chooses
/// a dtype, and therefore needs a different dtype argument.
template <typename Operator, typename Schema = typename Operator::schema>
struct CompositeKernel;
template <typename Operator, typename Result, typename... Args>
struct CompositeKernel<Operator, Result(Args...)> {
  static Result run(Args... args) {
    static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
        Operator::name, Operator::overload_name);
    static const OperatorInfo& info = info_of(op);
    if (C10_UNLIKELY(computes_wider(info, args...))) {
      return WiderCall<Operator>::run(op, static_cast<Args&&>(args)...);
    }
    return Operator::redispatch(
        c10::DispatchKeySet(c10::DispatchKey::CPU),
        static_cast<Args&&>(args)...);
  }
};

template <typename... Operators>
void add_composite_operators(torch::Library& library) {
  const auto name = [](const char* base, std::string_view overload) {
    return overload.empty() ? std::string(base)
                            : std::string(base).append(".").append(overload);
  };
  (library.impl(
       name(Operators::name, Operators::overload_name).c_str(),
       TORCH_FN(CompositeKernel<Operators>::run)),
   ...);
}

void add_fourier_transforms(torch::Library& library) {
  namespace ops = at::_ops;
  add_composite_operators<
      ops::fft_fft,
      ops::fft_fft_out,
      ops::fft_fft2,
      ops::fft_fft2_out,
      ops::fft_fftn,
      ops::fft_fftn_out,
      ops::fft_hfft,
      ops::fft_hfft_out,
      ops::fft_hfft2,
      ops::fft_hfft2_out,
      ops::fft_hfftn,
      ops::fft_hfftn_out,
      ops::fft_ifft,
      ops::fft_ifft_out,
      ops::fft_ifft2,
      ops::fft_ifft2_out,
      ops::fft_ifftn,
      ops::fft_ifftn_out,
      ops::fft_ihfft,
      ops::fft_ihfft_out,
      ops::fft_ihfft2,
      ops::fft_ihfft2_out,
      ops::fft_ihfftn,
      ops::fft_ihfftn_out,
      ops::fft_irfft,
      ops::fft_irfft_out,
      ops::fft_irfft2,
      ops::fft_irfft2_out,
      ops::fft_irfftn,
      ops::fft_irfftn_out,
      ops::fft_rfft,
      ops::fft_rfft_out,
      ops::fft_rfft2,
      ops::fft_rfft2_out,
      ops::fft_rfftn,
      ops::fft_rfftn_out>(library);
}

} // namespace

OPENREG_MECHANISM(
    wider_dtypes,
    "TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1): casts",
    "complex32, integer histc and others are rejected, as on the CPU") {
  use_wider_dtypes();
  prepare_wider("aten::histc", &place_between_integers);
  prepare_wider("aten::nansum", &sum_without_nan);
  static auto kernels = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  static auto autograd = OPENREG_LIBRARY_IMPL(aten, kAutogradKey);
  add_fourier_transforms(kernels);
  add_fourier_transforms(autograd);
}

} // namespace openreg::aten
