// SPDX-License-Identifier: BSD-3-Clause
// Special functions and polynomials.
#include "ops/structured/add_operators.h"
#include "ops/structured/families.h"

#include <ATen/ops/igamma_native.h>
#include <ATen/ops/igamma_ops.h>
#include <ATen/ops/igammac_native.h>
#include <ATen/ops/igammac_ops.h>
#include <ATen/ops/special_airy_ai_native.h>
#include <ATen/ops/special_airy_ai_ops.h>
#include <ATen/ops/special_bessel_j0_native.h>
#include <ATen/ops/special_bessel_j0_ops.h>
#include <ATen/ops/special_bessel_j1_native.h>
#include <ATen/ops/special_bessel_j1_ops.h>
#include <ATen/ops/special_bessel_y0_native.h>
#include <ATen/ops/special_bessel_y0_ops.h>
#include <ATen/ops/special_bessel_y1_native.h>
#include <ATen/ops/special_bessel_y1_ops.h>
#include <ATen/ops/special_chebyshev_polynomial_t_native.h>
#include <ATen/ops/special_chebyshev_polynomial_t_ops.h>
#include <ATen/ops/special_chebyshev_polynomial_u_native.h>
#include <ATen/ops/special_chebyshev_polynomial_u_ops.h>
#include <ATen/ops/special_chebyshev_polynomial_v_native.h>
#include <ATen/ops/special_chebyshev_polynomial_v_ops.h>
#include <ATen/ops/special_chebyshev_polynomial_w_native.h>
#include <ATen/ops/special_chebyshev_polynomial_w_ops.h>
#include <ATen/ops/special_entr_native.h>
#include <ATen/ops/special_entr_ops.h>
#include <ATen/ops/special_erfcx_native.h>
#include <ATen/ops/special_erfcx_ops.h>
#include <ATen/ops/special_hermite_polynomial_h_native.h>
#include <ATen/ops/special_hermite_polynomial_h_ops.h>
#include <ATen/ops/special_hermite_polynomial_he_native.h>
#include <ATen/ops/special_hermite_polynomial_he_ops.h>
#include <ATen/ops/special_i0e_native.h>
#include <ATen/ops/special_i0e_ops.h>
#include <ATen/ops/special_i1_native.h>
#include <ATen/ops/special_i1_ops.h>
#include <ATen/ops/special_i1e_native.h>
#include <ATen/ops/special_i1e_ops.h>
#include <ATen/ops/special_laguerre_polynomial_l_native.h>
#include <ATen/ops/special_laguerre_polynomial_l_ops.h>
#include <ATen/ops/special_legendre_polynomial_p_native.h>
#include <ATen/ops/special_legendre_polynomial_p_ops.h>
#include <ATen/ops/special_log_ndtr_native.h>
#include <ATen/ops/special_log_ndtr_ops.h>
#include <ATen/ops/special_modified_bessel_i0_native.h>
#include <ATen/ops/special_modified_bessel_i0_ops.h>
#include <ATen/ops/special_modified_bessel_i1_native.h>
#include <ATen/ops/special_modified_bessel_i1_ops.h>
#include <ATen/ops/special_modified_bessel_k0_native.h>
#include <ATen/ops/special_modified_bessel_k0_ops.h>
#include <ATen/ops/special_modified_bessel_k1_native.h>
#include <ATen/ops/special_modified_bessel_k1_ops.h>
#include <ATen/ops/special_ndtri_native.h>
#include <ATen/ops/special_ndtri_ops.h>
#include <ATen/ops/special_scaled_modified_bessel_k0_native.h>
#include <ATen/ops/special_scaled_modified_bessel_k0_ops.h>
#include <ATen/ops/special_scaled_modified_bessel_k1_native.h>
#include <ATen/ops/special_scaled_modified_bessel_k1_ops.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_t_native.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_t_ops.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_u_native.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_u_ops.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_v_native.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_v_ops.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_w_native.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_w_ops.h>
#include <ATen/ops/special_spherical_bessel_j0_native.h>
#include <ATen/ops/special_spherical_bessel_j0_ops.h>
#include <ATen/ops/special_xlog1py_native.h>
#include <ATen/ops/special_xlog1py_ops.h>
#include <ATen/ops/special_zeta_native.h>
#include <ATen/ops/special_zeta_ops.h>

namespace openreg::aten {

void add_structured_special(torch::Library& library) {
  namespace native = at::native;
  namespace ops = at::_ops;
  // Of one tensor.
  add_structured_operators<
      native::structured_special_entr_out,
      ops::special_entr>(library);
  add_structured_operators<
      native::structured_special_ndtri_out,
      ops::special_ndtri>(library);
  add_structured_operators<
      native::structured_special_log_ndtr_out,
      ops::special_log_ndtr>(library);
  add_structured_operators<
      native::structured_special_erfcx_out,
      ops::special_erfcx>(library);
  add_structured_operators<
      native::structured_special_i0e_out,
      ops::special_i0e>(library);
  add_structured_operators<native::structured_special_i1_out, ops::special_i1>(
      library);
  add_structured_operators<
      native::structured_special_i1e_out,
      ops::special_i1e>(library);
  add_structured_operators<
      native::structured_special_airy_ai_out,
      ops::special_airy_ai>(library);
  add_structured_operators<
      native::structured_special_bessel_j0_out,
      ops::special_bessel_j0>(library);
  add_structured_operators<
      native::structured_special_bessel_j1_out,
      ops::special_bessel_j1>(library);
  add_structured_operators<
      native::structured_special_bessel_y0_out,
      ops::special_bessel_y0>(library);
  add_structured_operators<
      native::structured_special_bessel_y1_out,
      ops::special_bessel_y1>(library);
  add_structured_operators<
      native::structured_special_modified_bessel_i0_out,
      ops::special_modified_bessel_i0>(library);
  add_structured_operators<
      native::structured_special_modified_bessel_i1_out,
      ops::special_modified_bessel_i1>(library);
  add_structured_operators<
      native::structured_special_modified_bessel_k0_out,
      ops::special_modified_bessel_k0>(library);
  add_structured_operators<
      native::structured_special_modified_bessel_k1_out,
      ops::special_modified_bessel_k1>(library);
  add_structured_operators<
      native::structured_special_scaled_modified_bessel_k0_out,
      ops::special_scaled_modified_bessel_k0>(library);
  add_structured_operators<
      native::structured_special_scaled_modified_bessel_k1_out,
      ops::special_scaled_modified_bessel_k1>(library);
  add_structured_operators<
      native::structured_special_spherical_bessel_j0_out,
      ops::special_spherical_bessel_j0>(library);
  // Of two.
  add_structured_operators<
      native::structured_igamma_out,
      ops::igamma,
      ops::igamma_>(library);
  add_structured_operators<
      native::structured_igammac_out,
      ops::igammac,
      ops::igammac_>(library);
  add_structured_operators<
      native::structured_special_xlog1py_out,
      ops::special_xlog1py>(library);
  add_structured_operators<
      native::structured_special_zeta_out,
      ops::special_zeta>(library);
  add_structured_operators<
      native::structured_special_chebyshev_polynomial_t_out,
      ops::special_chebyshev_polynomial_t>(library);
  add_structured_operators<
      native::structured_special_chebyshev_polynomial_u_out,
      ops::special_chebyshev_polynomial_u>(library);
  add_structured_operators<
      native::structured_special_chebyshev_polynomial_v_out,
      ops::special_chebyshev_polynomial_v>(library);
  add_structured_operators<
      native::structured_special_chebyshev_polynomial_w_out,
      ops::special_chebyshev_polynomial_w>(library);
  add_structured_operators<
      native::structured_special_hermite_polynomial_h_out,
      ops::special_hermite_polynomial_h>(library);
  add_structured_operators<
      native::structured_special_hermite_polynomial_he_out,
      ops::special_hermite_polynomial_he>(library);
  add_structured_operators<
      native::structured_special_laguerre_polynomial_l_out,
      ops::special_laguerre_polynomial_l>(library);
  add_structured_operators<
      native::structured_special_legendre_polynomial_p_out,
      ops::special_legendre_polynomial_p>(library);
  add_structured_operators<
      native::structured_special_shifted_chebyshev_polynomial_t_out,
      ops::special_shifted_chebyshev_polynomial_t>(library);
  add_structured_operators<
      native::structured_special_shifted_chebyshev_polynomial_u_out,
      ops::special_shifted_chebyshev_polynomial_u>(library);
  add_structured_operators<
      native::structured_special_shifted_chebyshev_polynomial_v_out,
      ops::special_shifted_chebyshev_polynomial_v>(library);
  add_structured_operators<
      native::structured_special_shifted_chebyshev_polynomial_w_out,
      ops::special_shifted_chebyshev_polynomial_w>(library);
}

} // namespace openreg::aten
