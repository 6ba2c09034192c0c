// SPDX-License-Identifier: BSD-3-Clause
// A structured kernel outside of PyTorch: PyTorch checks the arguments, and the
// device allocates the outputs and computes.
#include "launch.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/tril_native.h>
#include <torch/library.h>

namespace {

// [docs: outputs]
/// PyTorch's meta function calls set_output_*() with the result's metadata.
class Tril : public at::meta::structured_tril {
 public:
  Tril() = default;
  explicit Tril(const at::Tensor& given) : output_(given) {}

  void set_output_raw_strided(
      int64_t,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      at::TensorOptions options) override {
    if (!output_.defined()) {
      output_ = strides.empty() ? at::empty(sizes, options)
                                : at::empty_strided(sizes, strides, options);
      return;
    }
    TORCH_CHECK(
        output_.dtype() == options.dtype(),
        "Expected out tensor to have dtype ",
        options.dtype(),
        ", but got ",
        output_.dtype(),
        " instead");
    TORCH_CHECK(
        output_.device() == options.device(),
        "Expected out tensor to have device ",
        options.device(),
        ", but got ",
        output_.device(),
        " instead");
    output_.resize_(sizes);
  }

  void set_output_strided(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      at::TensorOptions options) override {
    set_output_raw_strided(index, sizes, strides, options);
  }

  const at::Tensor& maybe_get_output(int64_t) override {
    return output_;
  }

  /// Writes the lower triangle of every matrix of `x`.
  void impl(const at::Tensor& x, int64_t diagonal) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "tril", [&] {
      const at::Tensor input = x.contiguous();
      at::Tensor result = output_.contiguous();
      const auto* from = registering::kernel_pointer<const scalar_t>(input);
      auto* to = registering::kernel_pointer<scalar_t>(result);
      registering::launch(
          result,
          [=, count = x.numel(), rows = x.size(-2), columns = x.size(-1)] {
            for (int64_t i = 0; i < count; ++i) {
              const int64_t row = i / columns % rows;
              to[i] = i % columns <= row + diagonal ? from[i] : scalar_t(0);
            }
          });
      if (!output_.is_same(result)) {
        output_.copy_(result);
      }
    });
  }

 private:
  at::Tensor output_;
};
// [docs: end]

// [docs: variants]
at::Tensor tril(const at::Tensor& x, int64_t diagonal) {
  Tril op;
  op.meta(x, diagonal);
  op.impl(x, diagonal);
  return op.maybe_get_output(0);
}

at::Tensor& tril_out(const at::Tensor& x, int64_t diagonal, at::Tensor& out) {
  Tril op(out);
  op.meta(x, diagonal);
  op.impl(x, diagonal);
  return out;
}

at::Tensor& tril_(at::Tensor& x, int64_t diagonal) {
  return tril_out(x, diagonal, x);
}
// [docs: end]

} // namespace

// [docs: registration]
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("tril", tril);
  m.impl("tril.out", tril_out);
  m.impl("tril_", tril_);
}
// [docs: end]
