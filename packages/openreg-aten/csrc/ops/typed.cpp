// SPDX-License-Identifier: BSD-3-Clause
// Operators that programs call often enough for a kernel in their own C++
// signature. All others run boxed, with the same result.
#include "kernel/typed.h"

#include "mechanism.h"

#include <ATen/ops/_adaptive_avg_pool2d_backward_ops.h>
#include <ATen/ops/_adaptive_avg_pool2d_ops.h>
#include <ATen/ops/_foreach_add_ops.h>
#include <ATen/ops/_foreach_addcdiv_ops.h>
#include <ATen/ops/_foreach_addcmul_ops.h>
#include <ATen/ops/_foreach_div_ops.h>
#include <ATen/ops/_foreach_lerp_ops.h>
#include <ATen/ops/_foreach_mul_ops.h>
#include <ATen/ops/_foreach_sqrt_ops.h>
#include <ATen/ops/_fused_adam_ops.h>
#include <ATen/ops/_fused_adamw_ops.h>
#include <ATen/ops/_fused_sgd_ops.h>
#include <ATen/ops/_index_put_impl_ops.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/all_ops.h>
#include <ATen/ops/amax_ops.h>
#include <ATen/ops/amin_ops.h>
#include <ATen/ops/any_ops.h>
#include <ATen/ops/argmax_ops.h>
#include <ATen/ops/argmin_ops.h>
#include <ATen/ops/atan2_ops.h>
#include <ATen/ops/avg_pool2d_backward_ops.h>
#include <ATen/ops/avg_pool2d_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bernoulli_ops.h>
#include <ATen/ops/bitwise_and_ops.h>
#include <ATen/ops/bitwise_not_ops.h>
#include <ATen/ops/bitwise_or_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/clamp_max_ops.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/clone_ops.h>
#include <ATen/ops/cumsum_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/elu_ops.h>
#include <ATen/ops/embedding_dense_backward_ops.h>
#include <ATen/ops/embedding_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/flip_ops.h>
#include <ATen/ops/gather_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/hardtanh_ops.h>
#include <ATen/ops/index_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/isnan_ops.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/linalg_vector_norm_ops.h>
#include <ATen/ops/log1p_ops.h>
#include <ATen/ops/logical_and_ops.h>
#include <ATen/ops/logical_not_ops.h>
#include <ATen/ops/logical_or_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/masked_select_ops.h>
#include <ATen/ops/max_ops.h>
#include <ATen/ops/max_pool2d_with_indices_backward_ops.h>
#include <ATen/ops/max_pool2d_with_indices_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/min_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mse_loss_backward_ops.h>
#include <ATen/ops/mse_loss_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/mv_ops.h>
#include <ATen/ops/nan_to_num_ops.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <ATen/ops/nonzero_ops.h>
#include <ATen/ops/normal_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/prod_ops.h>
#include <ATen/ops/random_ops.h>
#include <ATen/ops/remainder_ops.h>
#include <ATen/ops/roll_ops.h>
#include <ATen/ops/round_ops.h>
#include <ATen/ops/rsub_ops.h>
#include <ATen/ops/scatter_add_ops.h>
#include <ATen/ops/scatter_ops.h>
#include <ATen/ops/sign_ops.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/softplus_ops.h>
#include <ATen/ops/sort_ops.h>
#include <ATen/ops/std_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/threshold_ops.h>
#include <ATen/ops/topk_ops.h>
#include <ATen/ops/tril_ops.h>
#include <ATen/ops/triu_ops.h>
#include <ATen/ops/uniform_ops.h>
#include <ATen/ops/var_ops.h>
#include <ATen/ops/where_ops.h>
#include <ATen/ops/zero_ops.h>
#include <torch/library.h>

namespace openreg::aten {
namespace {

template <typename Operator>
void add_operator(torch::Library& library) {
  using Kernel = TypedKernel<Operator>;
  TORCH_INTERNAL_ASSERT(Kernel::is_complete(), Operator::schema_str);
  const std::string name = toString(Kernel::handle().operator_name());
  library.impl(name.c_str(), TORCH_FN(Kernel::run));
}

template <typename... Operators>
void add_operators(torch::Library& library) {
  (add_operator<Operators>(library), ...);
}

} // namespace

OPENREG_MECHANISM(
    typed,
    "TORCH_LIBRARY_IMPL: typed kernels",
    "operators that are called often cost more") {
  namespace ops = at::_ops;
  static auto library = MAKE_TORCH_LIBRARY_IMPL(aten, PrivateUse1);
  // Pointwise, of one tensor.
  add_operators<
      ops::isnan,
      ops::log1p,
      ops::round,
      ops::sign,
      ops::logical_not,
      ops::bitwise_not,
      ops::gelu,
      ops::hardtanh,
      ops::hardtanh_,
      ops::leaky_relu,
      ops::elu,
      ops::softplus,
      ops::threshold,
      ops::clamp,
      ops::clamp_,
      ops::clamp_max,
      ops::nan_to_num>(library);
  // Pointwise, of two and more.
  add_operators<
      ops::add_Scalar,
      ops::sub_Scalar,
      ops::mul_Scalar,
      ops::div_Scalar,
      ops::div_Tensor_mode,
      ops::rsub_Scalar,
      ops::pow_Tensor_Tensor,
      ops::pow__Scalar,
      ops::remainder_Tensor,
      ops::atan2>(library);
  // Comparisons, logic and choice.
  add_operators<
      ops::logical_and,
      ops::logical_or,
      ops::bitwise_and_Tensor,
      ops::bitwise_or_Tensor,
      ops::where_self>(library);
  // Layers and losses, forward and backward.
  add_operators<
      ops::gelu_backward,
      ops::silu_backward,
      ops::_softmax,
      ops::_log_softmax,
      ops::_softmax_backward_data,
      ops::_log_softmax_backward_data,
      ops::native_layer_norm,
      ops::native_layer_norm_backward,
      ops::native_batch_norm,
      ops::native_batch_norm_backward,
      ops::nll_loss_forward,
      ops::nll_loss_backward,
      ops::mse_loss,
      ops::mse_loss_backward,
      ops::embedding,
      ops::embedding_dense_backward,
      ops::max_pool2d_with_indices,
      ops::max_pool2d_with_indices_backward,
      ops::avg_pool2d,
      ops::avg_pool2d_backward,
      ops::_adaptive_avg_pool2d,
      ops::_adaptive_avg_pool2d_backward,
      ops::index_select>(library);
  // Reductions.
  add_operators<
      ops::sum,
      ops::sum_dim_IntList,
      ops::mean,
      ops::mean_dim,
      ops::prod,
      ops::max,
      ops::max_dim,
      ops::min,
      ops::min_dim,
      ops::amax,
      ops::amin,
      ops::argmax,
      ops::argmin,
      ops::any,
      ops::all,
      ops::any_dim,
      ops::all_dim,
      ops::var_correction,
      ops::std_correction,
      ops::linalg_vector_norm,
      ops::cumsum,
      ops::topk,
      ops::sort>(library);
  // Products of matrices, attention.
  add_operators<
      ops::mm,
      ops::addmm,
      ops::addmm_,
      ops::bmm,
      ops::baddbmm,
      ops::mv,
      ops::addmv,
      ops::dot,
      ops::_scaled_dot_product_flash_attention_for_cpu,
      ops::_scaled_dot_product_flash_attention_for_cpu_backward>(library);
  // Copies, indices and random numbers.
  add_operators<
      ops::clone,
      ops::fill__Scalar,
      ops::fill__Tensor,
      ops::zero_,
      ops::cat,
      ops::index_Tensor,
      ops::_index_put_impl_,
      ops::gather,
      ops::scatter_src,
      ops::scatter_value,
      ops::scatter_add,
      ops::masked_fill__Scalar,
      ops::masked_fill__Tensor,
      ops::tril,
      ops::triu,
      ops::flip,
      ops::roll,
      ops::uniform_,
      ops::normal_,
      ops::bernoulli__float,
      ops::random_,
      ops::random__from,
      ops::masked_select,
      ops::nonzero>(library);
  // Optimizers.
  add_operators<
      ops::_foreach_add__Scalar,
      ops::_foreach_add__List,
      ops::_foreach_mul__Scalar,
      ops::_foreach_lerp__Scalar,
      ops::_foreach_addcmul__Scalar,
      ops::_foreach_addcdiv__ScalarList,
      ops::_foreach_addcdiv__Scalar,
      ops::_foreach_sqrt,
      ops::_foreach_div__ScalarList,
      ops::_foreach_div__Scalar,
      ops::_fused_adam_,
      ops::_fused_adamw_,
      ops::_fused_sgd_>(library);
}

} // namespace openreg::aten
