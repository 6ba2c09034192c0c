// SPDX-License-Identifier: BSD-3-Clause
// Reductions, cumulative operators and sorting.
#include "ops/typed/add_operators.h"
#include "ops/typed/families.h"

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
  // Cumulative operators.
  add_typed_operators<
      ops::cumsum,
      ops::cumsum_,
      ops::cumprod,
      ops::cumprod_,
      ops::_logcumsumexp,
      ops::_cummax_helper,
      ops::_cummin_helper>(library);
  // Sorting.
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
