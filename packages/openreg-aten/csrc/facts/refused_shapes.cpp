// SPDX-License-Identifier: BSD-3-Clause
// What kernels look at in shapes and meta kernels do not, operator by operator.
#include "facts/refused_shapes.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>

namespace openreg::aten {
namespace {

using at::IntArrayRef;
using torch::jit::Stack;

/// An argument that may be left out, which is an undefined tensor then.
at::Tensor tensor_of(const Stack& stack, size_t i) {
  return stack[i].isTensor() ? stack[i].toTensor() : at::Tensor();
}

bool has_other_sizes(const at::Tensor& tensor, IntArrayRef sizes) {
  return tensor.defined() && tensor.sizes() != sizes;
}

/// The place of a dimension that may count from the end; of one that there is
/// not, no place of the tensor.
size_t place_of(int64_t dim, const at::Tensor& tensor) {
  return static_cast<size_t>(dim < 0 ? dim + tensor.dim() : dim);
}

/// The sizes of the product in addmm() and addmv(). Those of its factors are
/// looked at by meta kernels too.
c10::DimVector product_sizes(const Stack& stack) {
  const at::Tensor& right = stack[2].toTensor();
  c10::DimVector sizes(stack[1].toTensor().sizes());
  if (!sizes.empty()) {
    sizes.pop_back();
  }
  if (right.dim() > 0) {
    sizes.append(right.sizes().begin() + 1, right.sizes().end());
  }
  return sizes;
}

bool adds_to_what_does_not_expand(const Stack& stack) {
  return !at::is_expandable_to(
      stack[0].toTensor().sizes(), product_sizes(stack));
}

bool adds_in_place_to_other_sizes(const Stack& stack) {
  return stack[0].toTensor().sizes() != IntArrayRef(product_sizes(stack));
}

bool has_boundaries_of_more_dimensions(const Stack& stack) {
  return stack[1].toTensor().dim() != 1;
}

bool adds_source_of_other_sizes(const Stack& stack) {
  const at::Tensor& self = stack[0].toTensor();
  const at::Tensor& source = stack[3].toTensor();
  const int64_t dim = stack[1].toInt();
  c10::DimVector sizes(self.sizes());
  const size_t place = place_of(dim, self);
  if (place < sizes.size() && source.dim() == self.dim()) {
    sizes[place] = source.size(dim);
  }
  return source.sizes() != IntArrayRef(sizes);
}

bool selects_by_more_than_a_vector(const Stack& stack) {
  return stack[2].toTensor().dim() > 1;
}

bool names_no_dimension(const Stack& stack) {
  const int64_t count = std::max<int64_t>(stack[0].toTensor().dim(), 1);
  // The dimension is the first number; a bool may come before it.
  const auto dim =
      std::find_if(stack.begin(), stack.end(), [](const c10::IValue& value) {
        return value.isInt();
      });
  return dim != stack.end() && (dim->toInt() < -count || dim->toInt() >= count);
}

bool has_gradient_of_other_sizes(const Stack& stack) {
  return has_other_sizes(stack[0].toTensor(), stack[1].toTensor().sizes());
}

bool names_a_dimension_twice(const Stack& stack) {
  if (!stack[2].isIntList()) {
    return false;
  }
  std::set<size_t> seen;
  const auto dims = stack[2].toDimVector();
  return std::any_of(dims.begin(), dims.end(), [&](int64_t dim) {
    return !seen.insert(place_of(dim, stack[0].toTensor())).second;
  });
}

bool has_target_of_other_sizes(const Stack& stack) {
  const at::Tensor& input = stack[0].toTensor();
  c10::DimVector sizes(input.sizes());
  if (sizes.size() > 1) {
    sizes.erase(sizes.begin() + 1); // the classes
  }
  return has_other_sizes(stack[1].toTensor(), sizes);
}

bool has_statistics_that_are_no_vectors(
    const Stack& stack,
    size_t begin,
    size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const at::Tensor each = tensor_of(stack, i);
    if (each.defined() && each.dim() != 1) {
      return true;
    }
  }
  return false;
}

bool norms_batches_by_no_vectors(const Stack& stack) {
  return has_statistics_that_are_no_vectors(stack, /*begin=*/1, /*end=*/5);
}

/// The gradient comes first, then what the norm had, and what it saved.
bool has_gradients_of_such_batches(const Stack& stack) {
  return has_statistics_that_are_no_vectors(stack, /*begin=*/2, /*end=*/7);
}

bool norms_groups_of_other_sizes(const Stack& stack) {
  const int64_t batches = stack[3].toInt();
  const int64_t channels = stack[4].toInt();
  const int64_t rest = stack[5].toInt();
  return batches < 0 || channels < 0 || rest < 0 ||
      batches * channels * rest != stack[0].toTensor().numel();
}

bool normed_layers_of_other_sizes(const Stack& stack) {
  const IntArrayRef input = stack[1].toTensor().sizes();
  const auto normalized = stack[2].toDimVector();
  const auto wanted = stack[7].toBoolList();
  for (const size_t i : {1, 2}) { // weight and bias
    if (wanted[i] && !tensor_of(stack, 4 + i).defined()) {
      return true; // a gradient of what there is not
    }
  }
  return normalized.size() > input.size() ||
      input.slice(input.size() - normalized.size()) !=
      IntArrayRef(normalized) ||
      has_other_sizes(tensor_of(stack, 5), normalized) ||
      has_other_sizes(tensor_of(stack, 6), normalized);
}

bool pools_to_other_than_two_sizes(const Stack& stack) {
  return stack[1].toDimVector().size() != 2;
}

bool has_gradient_of_other_dimensions(const Stack& stack) {
  return stack[0].toTensor().dim() != stack[1].toTensor().dim();
}

bool has_noise_of_other_sizes(const Stack& stack) {
  return has_other_sizes(stack[1].toTensor(), stack[0].toTensor().sizes());
}

/// Of the half that a gated linear unit gives.
bool has_gradient_of_other_halves(const Stack& stack) {
  const at::Tensor& self = stack[1].toTensor();
  c10::DimVector sizes(self.sizes());
  const size_t place = place_of(stack[2].toInt(), self);
  if (place < sizes.size()) {
    sizes[place] /= 2;
  }
  return has_other_sizes(stack[0].toTensor(), sizes);
}

using Refuses = bool (*)(const Stack& stack);

const std::unordered_map<std::string, Refuses> kRefuses = {
    {"aten::_adaptive_avg_pool2d", &pools_to_other_than_two_sizes},
    {"aten::_adaptive_avg_pool2d_backward", &has_gradient_of_other_dimensions},
    {"aten::_batch_norm_with_update", &norms_batches_by_no_vectors},
    {"aten::_log_softmax_backward_data", &has_gradient_of_other_sizes},
    {"aten::_native_batch_norm_legit", &norms_batches_by_no_vectors},
    {"aten::_softmax", &names_no_dimension},
    {"aten::_softmax_backward_data", &has_gradient_of_other_sizes},
    {"aten::addmm", &adds_to_what_does_not_expand},
    {"aten::addmm_", &adds_in_place_to_other_sizes},
    {"aten::addmv", &adds_to_what_does_not_expand},
    {"aten::addmv_", &adds_in_place_to_other_sizes},
    {"aten::bucketize", &has_boundaries_of_more_dimensions},
    {"aten::gelu_backward", &has_gradient_of_other_sizes},
    {"aten::glu_backward", &has_gradient_of_other_halves},
    {"aten::index_add", &adds_source_of_other_sizes},
    {"aten::index_add_", &adds_source_of_other_sizes},
    {"aten::index_select", &selects_by_more_than_a_vector},
    {"aten::linalg_vector_norm", &names_a_dimension_twice},
    {"aten::native_batch_norm", &norms_batches_by_no_vectors},
    {"aten::native_batch_norm_backward", &has_gradients_of_such_batches},
    {"aten::native_group_norm", &norms_groups_of_other_sizes},
    {"aten::native_layer_norm_backward", &normed_layers_of_other_sizes},
    {"aten::nll_loss2d_forward", &has_target_of_other_sizes},
    {"aten::rrelu_with_noise", &has_noise_of_other_sizes},
    {"aten::rrelu_with_noise_", &has_noise_of_other_sizes},
    {"aten::sort", &names_no_dimension},
};

} // namespace

bool has_refused_shapes(const std::string& name, const Stack& stack) {
  const auto found = kRefuses.find(name);
  return found != kRefuses.end() && found->second(stack);
}

} // namespace openreg::aten
