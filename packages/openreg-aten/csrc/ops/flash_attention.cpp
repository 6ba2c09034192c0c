// SPDX-License-Identifier: BSD-3-Clause
// Flash attention under the operator name of the CUDA kernel.
//
// scaled_dot_product_attention calls that operator for a fixed list of devices,
// and the CPU operator for all others. Tensor subclasses such as DTensor have
// rules only for the former.
#include "base/keys.h"
#include "base/mechanism.h"
#include "ops/attention.h"

#include <ATen/ATen.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <torch/library.h>

#include <limits>

namespace openreg::aten {
namespace {

/// Returns `tensor` with the strides of its fake version.
at::Tensor laid_out_as(const at::Tensor& like, const at::Tensor& tensor) {
  at::Tensor result = at::empty_like(like);
  return result.strides() == tensor.strides() ? tensor : result.copy_(tensor);
}

std::tuple<
    at::Tensor,
    at::Tensor,
    at::Tensor,
    at::Tensor,
    c10::SymInt,
    c10::SymInt,
    at::Tensor,
    at::Tensor,
    at::Tensor>
flash_attention(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    double dropout_p,
    bool is_causal,
    bool return_debug_mask,
    std::optional<double> scale) {
  TORCH_CHECK(
      !return_debug_mask,
      "_scaled_dot_product_flash_attention: return_debug_mask is True, but the "
      "device cannot return a dropout mask; pass False");
  const auto [output, logsumexp] =
      at::_scaled_dot_product_flash_attention_for_cpu(
          query, key, value, dropout_p, is_causal, std::nullopt, scale);
  // No numbers are drawn without dropout.
  const auto numbers = query.options().dtype(at::kUInt64);
  return {
      laid_out_as(query, output),
      logsumexp.contiguous(),
      at::Tensor(), // not nested
      at::Tensor(),
      query.sym_size(2),
      key.sym_size(2),
      at::zeros({2}, numbers),
      at::zeros({}, numbers),
      at::empty({0}, query.options())};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> flash_attention_backward(
    const at::Tensor& gradient,
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const at::Tensor& output,
    const at::Tensor& logsumexp,
    const at::Tensor& /*cum_seq_q*/,
    const at::Tensor& /*cum_seq_k*/,
    c10::SymInt /*max_q*/,
    c10::SymInt /*max_k*/,
    double dropout_p,
    bool is_causal,
    const at::Tensor& /*rng_state*/,
    const at::Tensor& /*unused*/,
    std::optional<double> scale) {
  const auto [for_query, for_key, for_value] =
      at::_scaled_dot_product_flash_attention_for_cpu_backward(
          gradient,
          query,
          key,
          value,
          output,
          logsumexp,
          dropout_p,
          is_causal,
          std::nullopt,
          scale);
  return {
      laid_out_as(query, for_query),
      laid_out_as(key, for_key),
      laid_out_as(value, for_value)};
}

/// Whether a tensor is of a subclass with its own dispatch rules. A fake tensor
/// is not: it represents a plain tensor, with memory on meta.
bool is_wrapper(const at::Tensor& tensor) {
  return tensor.key_set().has(c10::DispatchKey::Python) &&
      !(tensor.has_storage() && tensor.storage().device().is_meta());
}

/// Returns a mask to add to the scores.
at::Tensor additive(const at::Tensor& mask, const at::Tensor& query) {
  return mask.scalar_type() == at::kBool
      ? at::zeros_like(mask, query.options())
            .masked_fill_(
                mask.logical_not(), -std::numeric_limits<double>::infinity())
      : mask;
}

at::Tensor attention(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const std::optional<at::Tensor>& mask,
    double dropout_p,
    bool is_causal,
    std::optional<double> scale,
    bool enable_gqa) {
  const bool masked = mask && mask->defined();
  const auto is_flash = [&] {
    return choose_attention(
               query,
               key,
               value,
               mask,
               dropout_p,
               is_causal,
               scale,
               enable_gqa) ==
        static_cast<int64_t>(sdp::SDPBackend::flash_attention);
  };
  if (is_wrapper(query)) {
    // The logsumexp of the operator is float32, which loses half of a double.
    if (!masked && query.scalar_type() != at::kDouble && is_flash()) {
      return std::get<0>(at::_scaled_dot_product_flash_attention(
          query, key, value, dropout_p, is_causal, false, scale));
    }
  } else if (kIsCuda && is_flash()) {
    // PyTorch would call the operator of CUDA, which accepts no mask.
    return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
        query,
        key,
        value,
        dropout_p,
        is_causal,
        masked ? std::optional(additive(*mask, query)) : std::nullopt,
        scale));
  }
  return at::native::scaled_dot_product_attention(
      query, key, value, mask, dropout_p, is_causal, scale, enable_gqa);
}

} // namespace

OPENREG_MECHANISM(
    flash_attention,
    "aten::_scaled_dot_product_flash_attention",
    "no attention on DTensors, no context parallelism") {
  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  library.impl(
      "_scaled_dot_product_flash_attention", TORCH_FN(flash_attention));
  library.impl(
      "_scaled_dot_product_flash_attention_backward",
      TORCH_FN(flash_attention_backward));
  // Registered for both keys: without the first, autograd would see a single
  // operator without a derivative, and inference mode uses only the second.
  static auto autograd = OPENREG_LIBRARY_IMPL(aten, kAutogradKey);
  autograd.impl("scaled_dot_product_attention", TORCH_FN(attention));
  library.impl("scaled_dot_product_attention", TORCH_FN(attention));
}

} // namespace openreg::aten
