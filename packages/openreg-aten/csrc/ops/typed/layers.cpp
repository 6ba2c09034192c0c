// SPDX-License-Identifier: BSD-3-Clause
// Layers and losses, forward and backward.
#include "base/keys.h"
#include "ops/typed/add_operators.h"
#include "ops/typed/families.h"

namespace openreg::aten {

void add_typed_layers(torch::Library& library) {
  namespace ops = at::_ops;
  // Softmax; ops/cuda_operators.cpp has the kernels for CUDA.
  if (!kIsCuda) {
    add_typed_operators<
        ops::_softmax,
        ops::_log_softmax,
        ops::_softmax_backward_data,
        ops::_log_softmax_backward_data>(library);
  }
  // Normalization.
  add_typed_operators<
      ops::native_layer_norm,
      ops::native_layer_norm_backward,
      ops::native_group_norm,
      ops::native_group_norm_backward,
      ops::native_batch_norm,
      ops::native_batch_norm_backward,
      ops::_native_batch_norm_legit,
      ops::_native_batch_norm_legit_no_stats,
      ops::_batch_norm_with_update,
      ops::batch_norm_backward,
      ops::_weight_norm_interface,
      ops::_weight_norm_interface_backward>(library);
  // Losses.
  add_typed_operators<
      ops::nll_loss_forward,
      ops::nll_loss_backward,
      ops::nll_loss2d_forward,
      ops::nll_loss2d_backward,
      ops::mse_loss,
      ops::mse_loss_backward,
      ops::smooth_l1_loss,
      ops::smooth_l1_loss_backward_grad_input,
      ops::huber_loss,
      ops::huber_loss_backward_out,
      ops::binary_cross_entropy,
      ops::binary_cross_entropy_backward,
      ops::multi_margin_loss,
      ops::multi_margin_loss_backward,
      ops::multilabel_margin_loss_forward,
      ops::multilabel_margin_loss_backward,
      ops::_ctc_loss,
      ops::_ctc_loss_backward>(library);
  // Distances.
  add_typed_operators<
      ops::_cdist_forward,
      ops::_cdist_backward,
      ops::_pdist_forward,
      ops::_pdist_backward>(library);
  // Embeddings.
  add_typed_operators<
      ops::embedding,
      ops::embedding_dense_backward,
      ops::_embedding_bag,
      ops::_embedding_bag_forward_only,
      ops::_embedding_bag_dense_backward,
      ops::_embedding_bag_per_sample_weights_backward>(library);
  // Attention.
  add_typed_operators<
      ops::_scaled_dot_product_flash_attention_for_cpu,
      ops::_scaled_dot_product_flash_attention_for_cpu_backward>(library);
}

} // namespace openreg::aten
