// SPDX-License-Identifier: BSD-3-Clause
// Special functions and polynomials.
#include "ops/structured/add_operators.h"
#include "ops/structured/families.h"

namespace openreg::aten {

void add_structured_special(torch::Library& library) {
  namespace ops = at::_ops;
  // With one tensor.
  OPENREG_ADD(special_entr_out, ops::special_entr);
  OPENREG_ADD(special_ndtri_out, ops::special_ndtri);
  OPENREG_ADD(special_log_ndtr_out, ops::special_log_ndtr);
  OPENREG_ADD(special_erfcx_out, ops::special_erfcx);
  OPENREG_ADD(special_i0e_out, ops::special_i0e);
  OPENREG_ADD(special_i1_out, ops::special_i1);
  OPENREG_ADD(special_i1e_out, ops::special_i1e);
  OPENREG_ADD(special_airy_ai_out, ops::special_airy_ai);
  OPENREG_ADD(special_bessel_j0_out, ops::special_bessel_j0);
  OPENREG_ADD(special_bessel_j1_out, ops::special_bessel_j1);
  OPENREG_ADD(special_bessel_y0_out, ops::special_bessel_y0);
  OPENREG_ADD(special_bessel_y1_out, ops::special_bessel_y1);
  OPENREG_ADD(special_modified_bessel_i0_out, ops::special_modified_bessel_i0);
  OPENREG_ADD(special_modified_bessel_i1_out, ops::special_modified_bessel_i1);
  OPENREG_ADD(special_modified_bessel_k0_out, ops::special_modified_bessel_k0);
  OPENREG_ADD(special_modified_bessel_k1_out, ops::special_modified_bessel_k1);
  OPENREG_ADD(
      special_scaled_modified_bessel_k0_out,
      ops::special_scaled_modified_bessel_k0);
  OPENREG_ADD(
      special_scaled_modified_bessel_k1_out,
      ops::special_scaled_modified_bessel_k1);
  OPENREG_ADD(
      special_spherical_bessel_j0_out, ops::special_spherical_bessel_j0);
  // With two tensors.
  OPENREG_ADD(igamma_out, ops::igamma, ops::igamma_);
  OPENREG_ADD(igammac_out, ops::igammac, ops::igammac_);
  OPENREG_ADD(special_xlog1py_out, ops::special_xlog1py);
  OPENREG_ADD(special_zeta_out, ops::special_zeta);
  OPENREG_ADD(
      special_chebyshev_polynomial_t_out, ops::special_chebyshev_polynomial_t);
  OPENREG_ADD(
      special_chebyshev_polynomial_u_out, ops::special_chebyshev_polynomial_u);
  OPENREG_ADD(
      special_chebyshev_polynomial_v_out, ops::special_chebyshev_polynomial_v);
  OPENREG_ADD(
      special_chebyshev_polynomial_w_out, ops::special_chebyshev_polynomial_w);
  OPENREG_ADD(
      special_hermite_polynomial_h_out, ops::special_hermite_polynomial_h);
  OPENREG_ADD(
      special_hermite_polynomial_he_out, ops::special_hermite_polynomial_he);
  OPENREG_ADD(
      special_laguerre_polynomial_l_out, ops::special_laguerre_polynomial_l);
  OPENREG_ADD(
      special_legendre_polynomial_p_out, ops::special_legendre_polynomial_p);
  OPENREG_ADD(
      special_shifted_chebyshev_polynomial_t_out,
      ops::special_shifted_chebyshev_polynomial_t);
  OPENREG_ADD(
      special_shifted_chebyshev_polynomial_u_out,
      ops::special_shifted_chebyshev_polynomial_u);
  OPENREG_ADD(
      special_shifted_chebyshev_polynomial_v_out,
      ops::special_shifted_chebyshev_polynomial_v);
  OPENREG_ADD(
      special_shifted_chebyshev_polynomial_w_out,
      ops::special_shifted_chebyshev_polynomial_w);
}

} // namespace openreg::aten
