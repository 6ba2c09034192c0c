// SPDX-License-Identifier: BSD-3-Clause
// Layers over images and signals: pooling, interpolation, padding.
#include "ops/typed/add_operators.h"
#include "ops/typed/families.h"

namespace openreg::aten {

void add_typed_images(torch::Library& library) {
  namespace ops = at::_ops;
  // Pooling.
  add_typed_operators<
      ops::avg_pool2d,
      ops::avg_pool2d_backward,
      ops::avg_pool3d,
      ops::avg_pool3d_backward,
      ops::max_pool2d_with_indices,
      ops::max_pool2d_with_indices_backward,
      ops::max_pool3d_with_indices,
      ops::max_pool3d_with_indices_backward,
      ops::_adaptive_avg_pool2d,
      ops::_adaptive_avg_pool2d_backward,
      ops::_adaptive_avg_pool3d,
      ops::_adaptive_avg_pool3d_backward,
      ops::adaptive_max_pool2d,
      ops::adaptive_max_pool2d_backward,
      ops::adaptive_max_pool3d,
      ops::adaptive_max_pool3d_backward,
      ops::fractional_max_pool2d,
      ops::fractional_max_pool2d_backward,
      ops::fractional_max_pool3d,
      ops::fractional_max_pool3d_backward,
      ops::max_unpool2d,
      ops::max_unpool3d>(library);
  // Interpolation.
  add_typed_operators<
      ops::upsample_nearest1d,
      ops::upsample_nearest1d_backward,
      ops::upsample_nearest2d,
      ops::upsample_nearest2d_backward,
      ops::upsample_nearest3d,
      ops::upsample_nearest3d_backward,
      ops::_upsample_nearest_exact1d,
      ops::_upsample_nearest_exact1d_backward,
      ops::_upsample_nearest_exact2d,
      ops::_upsample_nearest_exact2d_backward,
      ops::_upsample_nearest_exact3d,
      ops::_upsample_nearest_exact3d_backward,
      ops::upsample_linear1d,
      ops::upsample_linear1d_backward,
      ops::upsample_bilinear2d,
      ops::upsample_bilinear2d_backward,
      ops::upsample_bicubic2d,
      ops::upsample_bicubic2d_backward,
      ops::upsample_trilinear3d,
      ops::upsample_trilinear3d_backward,
      ops::_upsample_bilinear2d_aa,
      ops::_upsample_bilinear2d_aa_backward,
      ops::_upsample_bicubic2d_aa,
      ops::_upsample_bicubic2d_aa_backward,
      ops::grid_sampler_2d,
      ops::grid_sampler_2d_backward,
      ops::grid_sampler_3d,
      ops::grid_sampler_3d_backward>(library);
  // Padding.
  add_typed_operators<
      ops::reflection_pad1d,
      ops::reflection_pad1d_backward,
      ops::reflection_pad2d,
      ops::reflection_pad2d_backward,
      ops::reflection_pad3d,
      ops::reflection_pad3d_backward,
      ops::replication_pad1d,
      ops::replication_pad1d_backward,
      ops::replication_pad2d,
      ops::replication_pad2d_backward,
      ops::replication_pad3d,
      ops::replication_pad3d_backward>(library);
  // Rearrangement.
  add_typed_operators<
      ops::im2col,
      ops::col2im,
      ops::unfold_backward,
      ops::pixel_shuffle,
      ops::pixel_unshuffle,
      ops::channel_shuffle>(library);
}

} // namespace openreg::aten
