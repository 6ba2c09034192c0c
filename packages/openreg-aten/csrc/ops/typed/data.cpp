// SPDX-License-Identifier: BSD-3-Clause
// Values, copies, indices and random numbers.
#include "base/keys.h"
#include "ops/typed/add_operators.h"
#include "ops/typed/families.h"

namespace openreg::aten {

namespace {

/// As on CUDA, the value may be on a device other than that of the tensor.
at::Tensor& fill_with_tensor(at::Tensor& self, const at::Tensor& value) {
  const bool reads_value = value.device() != self.device() &&
      value.device().type() == kDeviceType && value.dim() == 0;
  return reads_value ? self.fill_(value.item())
                     : TypedKernel<at::_ops::fill__Tensor>::run(self, value);
}

/// A call whose result has a given size.
class RepeatCall final : public TypedCall<at::_ops::repeat_interleave_Tensor> {
 public:
  RepeatCall(
      const at::Tensor& repeats,
      const std::optional<c10::SymInt>& output_size)
      : TypedCall(repeats.device().index(), repeats, output_size),
        repeats_(repeats),
        size_(output_size->expect_int()) {
    bytes_if_known =
        (static_cast<size_t>(repeats.numel() + size_)) * repeats.element_size();
    may_raise = true;
  }
  std::vector<at::Tensor> made() const override {
    return {made_ ? *made_ : at::empty({size_}, repeats_.options())};
  }

 private:
  const at::Tensor& repeats_;
  const int64_t size_;
};

/// As on CUDA, the call does not wait for the sum of `repeats` if the size of
/// the result is given.
at::Tensor repeat_interleave(
    const at::Tensor& repeats,
    std::optional<c10::SymInt> output_size) {
  const auto dtype = repeats.scalar_type();
  const bool is_valid = repeats.dim() == 1 && repeats.numel() > 0 &&
      (dtype == c10::ScalarType::Int || dtype == c10::ScalarType::Long);
  if (!output_size || *output_size < 0 || !is_valid) {
    return TypedKernel<at::_ops::repeat_interleave_Tensor>::run(
        repeats, std::move(output_size));
  }
  RepeatCall call(repeats, output_size);
  submit(call);
  return call.take_result();
}

} // namespace

void add_typed_data(torch::Library& library) {
  namespace ops = at::_ops;
  // Values and copies.
  add_typed_operators<
      ops::clone,
      ops::fill__Scalar,
      ops::zero_,
      ops::arange_start_out,
      ops::eye_m_out,
      ops::cat,
      ops::narrow_copy,
      ops::flip,
      ops::roll>(library);
  // Indices.
  add_typed_operators<
      ops::index_Tensor,
      ops::_index_put_impl_,
      ops::index_select,
      ops::index_add,
      ops::index_add_,
      ops::index_copy,
      ops::index_copy_,
      ops::index_fill__int_Scalar,
      ops::index_fill__int_Tensor,
      ops::index_reduce,
      ops::index_reduce_,
      ops::take,
      ops::gather,
      ops::scatter_src,
      ops::scatter__src,
      ops::scatter_value,
      ops::scatter__value,
      ops::scatter_reduce,
      ops::scatter_add,
      ops::scatter_add_,
      ops::scatter_reduce_two,
      ops::scatter_reduce__two>(library);
  // Masks.
  add_typed_operators<
      ops::masked_fill__Scalar,
      ops::masked_fill__Tensor,
      ops::masked_scatter_,
      ops::masked_select,
      ops::nonzero,
      ops::nonzero_static>(library);
  // Random numbers.
  add_typed_operators<
      ops::uniform_,
      ops::normal_,
      ops::normal_Tensor_Tensor,
      ops::normal_Tensor_float,
      ops::normal_float_Tensor,
      ops::bernoulli__float,
      ops::bernoulli__Tensor,
      ops::random_,
      ops::random__from,
      ops::random__to,
      ops::cauchy_,
      ops::exponential_,
      ops::geometric_,
      ops::log_normal_,
      ops::multinomial>(library);
  library.impl("fill_.Tensor", TORCH_FN(fill_with_tensor));
  library.impl("repeat_interleave.Tensor", TORCH_FN(repeat_interleave));
}

} // namespace openreg::aten
