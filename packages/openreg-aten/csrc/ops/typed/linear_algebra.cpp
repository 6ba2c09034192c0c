// SPDX-License-Identifier: BSD-3-Clause
// Matrix products, matrix decompositions and Fourier transforms.
#include "base/keys.h"
#include "base/torch_version.h"
#include "ops/typed/add_operators.h"
#include "ops/typed/families.h"

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
  // Triangular matrices and factorizations.
  add_typed_operators<
      ops::tril,
      ops::triu,
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
      ops::lu_unpack OPENREG_OPERATORS_BEFORE_2_14(ops::cholesky)>(library);
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
      ops::linalg_matrix_exp>(library);
  // ops/cuda_operators.cpp has the kernel for CUDA.
  if (!kIsCuda) {
    add_typed_operator<ops::_linalg_svd>(library);
  }
  // Fourier transforms.
  add_typed_operators<ops::_fft_r2c, ops::_fft_c2c, ops::_fft_c2r>(library);
}

} // namespace openreg::aten
