// SPDX-License-Identifier: BSD-3-Clause
// Special functions and polynomials. They are structured, but are seldom called
// on small tensors, and on large ones a structured kernel is no faster.
#include "ops/typed/add_operators.h"
#include "ops/typed/families.h"

namespace openreg::aten {

void add_typed_special(torch::Library& library) {
  namespace ops = at::_ops;
  // Of one tensor.
  add_typed_operators<
      ops::special_entr,
      ops::special_ndtri,
      ops::special_log_ndtr,
      ops::special_erfcx,
      ops::special_i0e,
      ops::special_i1,
      ops::special_i1e,
      ops::special_airy_ai,
      ops::special_bessel_j0,
      ops::special_bessel_j1,
      ops::special_bessel_y0,
      ops::special_bessel_y1,
      ops::special_modified_bessel_i0,
      ops::special_modified_bessel_i1,
      ops::special_modified_bessel_k0,
      ops::special_modified_bessel_k1,
      ops::special_scaled_modified_bessel_k0,
      ops::special_scaled_modified_bessel_k1,
      ops::special_spherical_bessel_j0>(library);
  // Of two.
  add_typed_operators<
      ops::igamma,
      ops::igamma_,
      ops::igammac,
      ops::igammac_,
      ops::special_xlog1py,
      ops::special_zeta,
      ops::special_chebyshev_polynomial_t,
      ops::special_chebyshev_polynomial_u,
      ops::special_chebyshev_polynomial_v,
      ops::special_chebyshev_polynomial_w,
      ops::special_hermite_polynomial_h,
      ops::special_hermite_polynomial_he,
      ops::special_laguerre_polynomial_l,
      ops::special_legendre_polynomial_p,
      ops::special_shifted_chebyshev_polynomial_t,
      ops::special_shifted_chebyshev_polynomial_u,
      ops::special_shifted_chebyshev_polynomial_v,
      ops::special_shifted_chebyshev_polynomial_w>(library);
}

} // namespace openreg::aten
