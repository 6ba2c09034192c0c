// SPDX-License-Identifier: BSD-3-Clause
// Values, copies, indices and random numbers.
#include "ops/typed/add_operators.h"
#include "ops/typed/families.h"

#include <ATen/ops/_index_put_impl_ops.h>
#include <ATen/ops/arange_ops.h>
#include <ATen/ops/bernoulli_ops.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/cauchy_ops.h>
#include <ATen/ops/clone_ops.h>
#include <ATen/ops/exponential_ops.h>
#include <ATen/ops/eye_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/flip_ops.h>
#include <ATen/ops/gather_ops.h>
#include <ATen/ops/geometric_ops.h>
#include <ATen/ops/index_add_ops.h>
#include <ATen/ops/index_copy_ops.h>
#include <ATen/ops/index_fill_ops.h>
#include <ATen/ops/index_ops.h>
#include <ATen/ops/index_reduce_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/log_normal_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/masked_scatter_ops.h>
#include <ATen/ops/masked_select_ops.h>
#include <ATen/ops/multinomial_ops.h>
#include <ATen/ops/narrow_copy_ops.h>
#include <ATen/ops/nonzero_ops.h>
#include <ATen/ops/nonzero_static_ops.h>
#include <ATen/ops/normal_ops.h>
#include <ATen/ops/random_ops.h>
#include <ATen/ops/roll_ops.h>
#include <ATen/ops/scatter_add_ops.h>
#include <ATen/ops/scatter_ops.h>
#include <ATen/ops/scatter_reduce_ops.h>
#include <ATen/ops/take_ops.h>
#include <ATen/ops/uniform_ops.h>
#include <ATen/ops/zero_ops.h>

namespace openreg::aten {

namespace {

/// As on CUDA, a tensor of any device is filled with a value of any other.
at::Tensor& fill_with_tensor(at::Tensor& self, const at::Tensor& value) {
  const bool reads_value = value.device() != self.device() &&
      value.device().type() == c10::kPrivateUse1 && value.dim() == 0;
  return reads_value ? self.fill_(value.item())
                     : TypedKernel<at::_ops::fill__Tensor>::run(self, value);
}

} // namespace

void add_typed_data(torch::Library& library) {
  namespace ops = at::_ops;
  // Values and copies.
  add_typed_operators<
      ops::clone,
      ops::fill__Scalar,
      ops::zero_,
      ops::arange_start_out,
      ops::eye_m_out,
      ops::cat,
      ops::narrow_copy,
      ops::flip,
      ops::roll>(library);
  // Indices.
  add_typed_operators<
      ops::index_Tensor,
      ops::_index_put_impl_,
      ops::index_select,
      ops::index_add,
      ops::index_add_,
      ops::index_copy,
      ops::index_copy_,
      ops::index_fill__int_Scalar,
      ops::index_fill__int_Tensor,
      ops::index_reduce,
      ops::index_reduce_,
      ops::take,
      ops::gather,
      ops::scatter_src,
      ops::scatter__src,
      ops::scatter_value,
      ops::scatter__value,
      ops::scatter_reduce,
      ops::scatter_add,
      ops::scatter_add_,
      ops::scatter_reduce_two,
      ops::scatter_reduce__two>(library);
  // Masks.
  add_typed_operators<
      ops::masked_fill__Scalar,
      ops::masked_fill__Tensor,
      ops::masked_scatter_,
      ops::masked_select,
      ops::nonzero,
      ops::nonzero_static>(library);
  // Random numbers.
  add_typed_operators<
      ops::uniform_,
      ops::normal_,
      ops::normal_Tensor_Tensor,
      ops::normal_Tensor_float,
      ops::normal_float_Tensor,
      ops::bernoulli__float,
      ops::bernoulli__Tensor,
      ops::random_,
      ops::random__from,
      ops::random__to,
      ops::cauchy_,
      ops::exponential_,
      ops::geometric_,
      ops::log_normal_,
      ops::multinomial>(library);
  library.impl("fill_.Tensor", TORCH_FN(fill_with_tensor));
}

} // namespace openreg::aten
