// SPDX-License-Identifier: BSD-3-Clause
// Products and decompositions of matrices, Fourier transforms.
#include "ops/typed/add_operators.h"
#include "ops/typed/families.h"

#include <ATen/ops/_cholesky_solve_helper_ops.h>
#include <ATen/ops/_fft_c2c_ops.h>
#include <ATen/ops/_fft_c2r_ops.h>
#include <ATen/ops/_fft_r2c_ops.h>
#include <ATen/ops/_linalg_det_ops.h>
#include <ATen/ops/_linalg_eigh_ops.h>
#include <ATen/ops/_linalg_eigvals_ops.h>
#include <ATen/ops/_linalg_slogdet_ops.h>
#include <ATen/ops/_linalg_solve_ex_ops.h>
#include <ATen/ops/_linalg_svd_ops.h>
#include <ATen/ops/addbmm_ops.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/addr_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/cholesky_inverse_ops.h>
#include <ATen/ops/cholesky_ops.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/geqrf_ops.h>
#include <ATen/ops/linalg_cholesky_ex_ops.h>
#include <ATen/ops/linalg_cross_ops.h>
#include <ATen/ops/linalg_eig_ops.h>
#include <ATen/ops/linalg_householder_product_ops.h>
#include <ATen/ops/linalg_inv_ex_ops.h>
#include <ATen/ops/linalg_ldl_factor_ex_ops.h>
#include <ATen/ops/linalg_ldl_solve_ops.h>
#include <ATen/ops/linalg_lstsq_ops.h>
#include <ATen/ops/linalg_lu_factor_ex_ops.h>
#include <ATen/ops/linalg_lu_ops.h>
#include <ATen/ops/linalg_lu_solve_ops.h>
#include <ATen/ops/linalg_matrix_exp_ops.h>
#include <ATen/ops/linalg_qr_ops.h>
#include <ATen/ops/linalg_solve_triangular_ops.h>
#include <ATen/ops/lu_unpack_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mv_ops.h>
#include <ATen/ops/ormqr_ops.h>
#include <ATen/ops/triangular_solve_ops.h>
#include <ATen/ops/tril_ops.h>
#include <ATen/ops/triu_ops.h>
#include <ATen/ops/vdot_ops.h>

namespace openreg::aten {

void add_typed_linear_algebra(torch::Library& library) {
  namespace ops = at::_ops;
  // Products.
  add_typed_operators<
      ops::mm,
      ops::mm_out,
      ops::addmm,
      ops::addmm_,
      ops::bmm,
      ops::baddbmm,
      ops::mv,
      ops::addmv,
      ops::dot,
      ops::vdot,
      ops::addr,
      ops::addbmm,
      ops::addbmm_,
      ops::linalg_cross>(library);
  // Triangles and factors.
  add_typed_operators<
      ops::tril,
      ops::triu,
      ops::cholesky,
      ops::cholesky_inverse,
      ops::_cholesky_solve_helper,
      ops::linalg_cholesky_ex,
      ops::geqrf,
      ops::ormqr,
      ops::linalg_householder_product,
      ops::linalg_qr,
      ops::linalg_ldl_factor_ex,
      ops::linalg_ldl_solve,
      ops::linalg_lu,
      ops::linalg_lu_factor_ex,
      ops::linalg_lu_solve,
      ops::lu_unpack>(library);
  // Solutions, inverses and determinants.
  add_typed_operators<
      ops::linalg_inv_ex,
      ops::_linalg_solve_ex,
      ops::linalg_solve_triangular,
      ops::triangular_solve,
      ops::linalg_lstsq_out,
      ops::_linalg_det,
      ops::_linalg_slogdet>(library);
  // Eigenvalues and singular values.
  add_typed_operators<
      ops::linalg_eig,
      ops::_linalg_eigvals,
      ops::_linalg_eigh,
      ops::_linalg_svd,
      ops::linalg_matrix_exp>(library);
  // Fourier transforms.
  add_typed_operators<ops::_fft_r2c, ops::_fft_c2c, ops::_fft_c2r>(library);
}

} // namespace openreg::aten
