// SPDX-License-Identifier: BSD-3-Clause
// The operators that SyncBatchNorm calls between its collectives. PyTorch
// implements them only for devices, so they are written here in ATen, as
// operators of this library that the boxed kernel can run. Dtypes and shapes
// are as on CUDA: statistics of float16 and bfloat16 are float32.
#include "base/keys.h"
#include "base/mechanism.h"
#include "kernel/boxed.h"

#include <ATen/AccumulateType.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/var_mean.h>
#include <torch/library.h>

#include <limits>
#include <utility>

namespace openreg::aten {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

/// Returns the dtype of the statistics of tensors of a dtype.
at::ScalarType accumulated(at::ScalarType type) {
  return at::toAccumulateType(type, c10::DeviceType::CUDA);
}

void check_type(const char* name, const Tensor& tensor, at::ScalarType type) {
  TORCH_CHECK(
      tensor.scalar_type() == type,
      "Expected ",
      name,
      " to have type ",
      type,
      " but got ",
      tensor.scalar_type());
}

/// Throws unless a weight or bias has the dtype of the input or of its
/// statistics.
void check_parameter(
    const char* name,
    const OptionalTensor& parameter,
    const Tensor& input) {
  if (parameter && parameter->scalar_type() != input.scalar_type()) {
    check_type(name, *parameter, accumulated(input.scalar_type()));
  }
}

/// Returns all dimensions except the channel dimension.
at::DimVector all_but_channels(const Tensor& input) {
  at::DimVector dims;
  for (int64_t i = 0; i < input.dim(); ++i) {
    if (i != 1) {
      dims.push_back(i);
    }
  }
  return dims;
}

/// Reshapes one value per channel to broadcast over the input.
Tensor per_channel(const Tensor& values, const Tensor& input) {
  at::DimVector sizes(static_cast<size_t>(input.dim()), 1);
  sizes[1] = values.size(0);
  return values.to(accumulated(input.scalar_type())).reshape(sizes);
}

Tensor accumulate(const Tensor& input) {
  return input.to(accumulated(input.scalar_type()));
}

std::tuple<Tensor, Tensor> stats(const Tensor& input, double eps) {
  const int64_t channels = input.size(1);
  if (input.numel() == 0) { // var_mean() would warn
    const auto options =
        input.options().dtype(accumulated(input.scalar_type()));
    return {
        at::full({channels}, 0, options),
        at::full(
            {channels}, std::numeric_limits<double>::quiet_NaN(), options)};
  }
  auto [variance, mean] =
      at::var_mean(accumulate(input), all_but_channels(input), 0);
  Tensor invstd = variance.add(eps).rsqrt();
  if (eps == 0) {
    invstd.masked_fill_(variance == 0, 0);
  }
  return {std::move(mean), std::move(invstd)};
}

/// Updates running statistics. The new ones have the weight `momentum`.
void update(const OptionalTensor& running, const Tensor& now, double momentum) {
  if (running) {
    running->copy_(
        (1 - momentum) * running->to(now.scalar_type()) + momentum * now);
  }
}

// Combines the statistics of several batches, one per row of `mean` and
// `invstd`. `counts` has the number of elements per channel of each batch.
std::tuple<Tensor, Tensor> gather_stats_with_counts(
    const Tensor& input,
    const Tensor& mean,
    const Tensor& invstd,
    const OptionalTensor& running_mean,
    const OptionalTensor& running_var,
    double momentum,
    double eps,
    const Tensor& counts) {
  const auto type = (running_mean ? *running_mean : input).scalar_type();
  check_type("mean", mean, accumulated(type));
  check_type("invstd", invstd, accumulated(type));
  check_type("counts", counts, type);
  if (running_var) {
    check_type("running_var", *running_var, type);
  }
  const Tensor count = accumulate(counts).unsqueeze(1);
  const Tensor total = count.sum();
  Tensor joined = (mean * count).sum(0) / total;
  // The squared differences within each batch, and those between batches.
  const Tensor within = invstd.pow(-2).sub(eps) * count;
  const Tensor between = (mean - joined).square() * count;
  const Tensor squares = (within + between).sum(0);
  update(running_mean, joined, momentum);
  update(running_var, squares / (total - 1), momentum);
  return {std::move(joined), (squares / total).add(eps).rsqrt()};
}

std::tuple<Tensor, Tensor> gather_stats(
    const Tensor& input,
    const Tensor& mean,
    const Tensor& invstd,
    const OptionalTensor& running_mean,
    const OptionalTensor& running_var,
    double momentum,
    double eps,
    int64_t count) {
  const Tensor counts = at::full(
      {mean.size(0)}, count, (running_mean ? *running_mean : input).options());
  return gather_stats_with_counts(
      input, mean, invstd, running_mean, running_var, momentum, eps, counts);
}

Tensor& elemt_out(
    const Tensor& input,
    const OptionalTensor& weight,
    const OptionalTensor& bias,
    const Tensor& mean,
    const Tensor& invstd,
    double /*eps*/, // invstd includes it
    Tensor& out) {
  const auto type = accumulated(input.scalar_type());
  check_type("mean", mean, type);
  check_type("invstd", invstd, type);
  check_parameter("weight", weight, input);
  check_parameter("bias", bias, input);
  check_type("output", out, input.scalar_type());
  Tensor value = (accumulate(input) - per_channel(mean, input)) *
      per_channel(invstd, input);
  if (weight) {
    value *= per_channel(*weight, input);
  }
  if (bias) {
    value += per_channel(*bias, input);
  }
  at::native::resize_output(out, input.sizes());
  return out.copy_(value);
}

Tensor elemt(
    const Tensor& input,
    const OptionalTensor& weight,
    const OptionalTensor& bias,
    const Tensor& mean,
    const Tensor& invstd,
    double eps) {
  Tensor out = at::empty_like(input, input.suggest_memory_format());
  return elemt_out(input, weight, bias, mean, invstd, eps, out);
}

void check_backward(
    const Tensor& grad_out,
    const Tensor& input,
    const Tensor& mean,
    const Tensor& invstd,
    const OptionalTensor& weight) {
  const auto type = accumulated(input.scalar_type());
  check_type("grad_output", grad_out, input.scalar_type());
  TORCH_CHECK(
      mean.scalar_type() == invstd.scalar_type(),
      "mean and invstd need to have the same data types");
  check_type("mean", mean, type);
  check_parameter("weight", weight, input);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward_reduce(
    const Tensor& grad_out,
    const Tensor& input,
    const Tensor& mean,
    const Tensor& invstd,
    const OptionalTensor& weight,
    bool input_g,
    bool weight_g,
    bool bias_g) {
  check_backward(grad_out, input, mean, invstd, weight);
  TORCH_CHECK(
      weight || !(weight_g || bias_g),
      "batch_norm_backward_reduce: weight_g and bias_g need weight, but weight "
      "is None");
  const auto dims = all_but_channels(input);
  const Tensor gradient = accumulate(grad_out);
  const Tensor sum = gradient.sum(dims);
  const Tensor product =
      (gradient * (accumulate(input) - per_channel(mean, input))).sum(dims);
  Tensor sum_dy, sum_dy_xmu, grad_weight, grad_bias;
  if (input_g) {
    sum_dy = sum;
    sum_dy_xmu = product;
  }
  if (weight_g) {
    grad_weight = (product * invstd).to(weight->scalar_type());
  }
  if (bias_g) {
    grad_bias = sum.to(weight->scalar_type(), false, /*copy=*/true);
  }
  return {
      std::move(sum_dy),
      std::move(sum_dy_xmu),
      std::move(grad_weight),
      std::move(grad_bias)};
}

// The sums cover all batches, and `count` has the number of elements of each.
Tensor backward_elemt(
    const Tensor& grad_out,
    const Tensor& input,
    const Tensor& mean,
    const Tensor& invstd,
    const OptionalTensor& weight,
    const Tensor& sum_dy,
    const Tensor& sum_dy_xmu,
    const Tensor& count) {
  check_backward(grad_out, input, mean, invstd, weight);
  check_type("sum_dy", sum_dy, mean.scalar_type());
  check_type("sum_dy_xmu", sum_dy_xmu, mean.scalar_type());
  check_type("count", count, at::kInt);
  const Tensor total = count.sum().to(mean.scalar_type());
  const Tensor slope = invstd * invstd * sum_dy_xmu / total;
  const Tensor scale =
      weight ? weight->to(mean.scalar_type()) * invstd : invstd;
  const Tensor centered = accumulate(input) - per_channel(mean, input);
  const Tensor value =
      (accumulate(grad_out) - per_channel(sum_dy / total, input) -
       centered * per_channel(slope, input)) *
      per_channel(scale, input);
  return at::empty_like(input, grad_out.suggest_memory_format()).copy_(value);
}

constexpr char kStats[] = "openreg::batch_norm_stats";
constexpr char kGather[] = "openreg::batch_norm_gather_stats";
constexpr char kGatherWithCounts[] =
    "openreg::batch_norm_gather_stats_with_counts";
constexpr char kElemt[] = "openreg::batch_norm_elemt";
constexpr char kElemtOut[] = "openreg::batch_norm_elemt_out";
constexpr char kReduce[] = "openreg::batch_norm_backward_reduce";
constexpr char kBackward[] = "openreg::batch_norm_backward_elemt";

struct Libraries {
  torch::Library schemas, cpu, device;
};

/// Defines an operator with the arguments of PyTorch's operator, and redirects
/// that operator to it.
template <const char* name, typename Kernel>
void add(
    Libraries& to,
    const char* original,
    const char* overload,
    Kernel kernel) {
  const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(original, overload);
  to.schemas.def(op.schema().cloneWithName(name, ""));
  to.cpu.impl(name, kernel);
  to.device.impl(
      toString(op.operator_name()).c_str(),
      torch::CppFunction::makeFromBoxedFunction<&run_as<name>>());
}

} // namespace

OPENREG_MECHANISM(
    sync_batch_norm,
    "aten::batch_norm_stats and its siblings",
    "no SyncBatchNorm across processes") {
  static Libraries to{
      {torch::Library::FRAGMENT, "openreg", std::nullopt, __FILE__, __LINE__},
      MAKE_TORCH_LIBRARY_IMPL(openreg, CPU),
      OPENREG_LIBRARY_IMPL(aten, kDenseKey)};
  add<kStats>(to, "aten::batch_norm_stats", "", TORCH_FN(stats));
  add<kGather>(to, "aten::batch_norm_gather_stats", "", TORCH_FN(gather_stats));
  add<kGatherWithCounts>(
      to,
      "aten::batch_norm_gather_stats_with_counts",
      "",
      TORCH_FN(gather_stats_with_counts));
  add<kElemt>(to, "aten::batch_norm_elemt", "", TORCH_FN(elemt));
  add<kElemtOut>(to, "aten::batch_norm_elemt", "out", TORCH_FN(elemt_out));
  add<kReduce>(
      to, "aten::batch_norm_backward_reduce", "", TORCH_FN(backward_reduce));
  add<kBackward>(
      to, "aten::batch_norm_backward_elemt", "", TORCH_FN(backward_elemt));
}

} // namespace openreg::aten
