// SPDX-License-Identifier: BSD-3-Clause
// Reductions, running totals and order.
#include "ops/typed/add_operators.h"
#include "ops/typed/families.h"

#include <ATen/ops/_cummax_helper_ops.h>
#include <ATen/ops/_cummin_helper_ops.h>
#include <ATen/ops/_histogramdd_bin_edges_ops.h>
#include <ATen/ops/_histogramdd_from_bin_cts_ops.h>
#include <ATen/ops/_histogramdd_from_bin_tensors_ops.h>
#include <ATen/ops/_logcumsumexp_ops.h>
#include <ATen/ops/_segment_reduce_backward_ops.h>
#include <ATen/ops/_unique2_ops.h>
#include <ATen/ops/all_ops.h>
#include <ATen/ops/amax_ops.h>
#include <ATen/ops/amin_ops.h>
#include <ATen/ops/aminmax_ops.h>
#include <ATen/ops/any_ops.h>
#include <ATen/ops/argmax_ops.h>
#include <ATen/ops/argmin_ops.h>
#include <ATen/ops/bucketize_ops.h>
#include <ATen/ops/count_nonzero_ops.h>
#include <ATen/ops/cumprod_ops.h>
#include <ATen/ops/cumsum_ops.h>
#include <ATen/ops/hash_tensor_ops.h>
#include <ATen/ops/histc_ops.h>
#include <ATen/ops/histogram_ops.h>
#include <ATen/ops/kthvalue_ops.h>
#include <ATen/ops/linalg_vector_norm_ops.h>
#include <ATen/ops/max_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/median_ops.h>
#include <ATen/ops/min_ops.h>
#include <ATen/ops/mode_ops.h>
#include <ATen/ops/nanmedian_ops.h>
#include <ATen/ops/nansum_ops.h>
#include <ATen/ops/norm_ops.h>
#include <ATen/ops/prod_ops.h>
#include <ATen/ops/renorm_ops.h>
#include <ATen/ops/searchsorted_ops.h>
#include <ATen/ops/segment_reduce_ops.h>
#include <ATen/ops/sort_ops.h>
#include <ATen/ops/std_mean_ops.h>
#include <ATen/ops/std_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/topk_ops.h>
#include <ATen/ops/unique_consecutive_ops.h>
#include <ATen/ops/unique_dim_ops.h>
#include <ATen/ops/var_mean_ops.h>
#include <ATen/ops/var_ops.h>

namespace openreg::aten {

void add_typed_reductions(torch::Library& library) {
  namespace ops = at::_ops;
  // Sums, products and norms.
  add_typed_operators<
      ops::sum,
      ops::sum_dim_IntList,
      ops::sum_IntList_out,
      ops::nansum,
      ops::mean,
      ops::mean_dim,
      ops::prod,
      ops::prod_dim_int,
      ops::linalg_vector_norm,
      ops::norm_ScalarOpt_dim,
      ops::renorm,
      ops::renorm_>(library);
  // Statistics.
  add_typed_operators<
      ops::var_correction,
      ops::std_correction,
      ops::var_mean_correction,
      ops::std_mean_correction,
      ops::count_nonzero_dim_IntList,
      ops::hash_tensor,
      ops::histc,
      ops::histogram_bin_ct,
      ops::histogram_bins_tensor,
      ops::_histogramdd_bin_edges,
      ops::_histogramdd_from_bin_cts,
      ops::_histogramdd_from_bin_tensors,
      ops::segment_reduce,
      ops::_segment_reduce_backward>(library);
  // Extremes.
  add_typed_operators<
      ops::max,
      ops::max_dim,
      ops::min,
      ops::min_dim,
      ops::amax,
      ops::amax_out,
      ops::amin,
      ops::aminmax,
      ops::argmax,
      ops::argmin>(library);
  // Logic.
  add_typed_operators<ops::any, ops::all, ops::any_dim, ops::all_dim>(library);
  // Running totals.
  add_typed_operators<
      ops::cumsum,
      ops::cumsum_,
      ops::cumprod,
      ops::cumprod_,
      ops::_logcumsumexp,
      ops::_cummax_helper,
      ops::_cummin_helper>(library);
  // Order.
  add_typed_operators<
      ops::topk,
      ops::sort,
      ops::sort_stable,
      ops::kthvalue_values,
      ops::mode,
      ops::median,
      ops::median_dim_values,
      ops::nanmedian,
      ops::nanmedian_dim_values,
      ops::_unique2,
      ops::unique_consecutive,
      ops::unique_dim,
      ops::searchsorted_Tensor,
      ops::bucketize_Tensor>(library);
}

} // namespace openreg::aten
