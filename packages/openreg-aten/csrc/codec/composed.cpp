// SPDX-License-Identifier: BSD-3-Clause
// Encodes sparse and nested tensors.
#include "codec/components.h"
#include "codec/extent.h"
#include "codec/values.h"
#include "device/device.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace openreg::aten::codec {
namespace {

using at::SparseCsrTensorImpl;
using at::SparseTensorImpl;
using at::native::NestedTensorImpl;
using c10::DispatchKey;

enum class ComposedTag : std::uint8_t {
  kSparse,
  kCompressed,
  kNested,
  kLast = kNested,
};

const c10::Device kHost(c10::kCPU);

/// Returns a host tensor that is not allocated by the allocator of a kernel.
at::Tensor make_host_tensor(
    const std::vector<std::int64_t>& numbers,
    at::IntArrayRef sizes) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      make_host_storage(
          {reinterpret_cast<const std::uint8_t*>(numbers.data()),
           numbers.size() * sizeof(std::int64_t)}),
      c10::DispatchKeySet(DispatchKey::CPU),
      caffe2::TypeMeta::Make<std::int64_t>());
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

at::IntArrayRef numbers_of(const at::Tensor& tensor) {
  return {
      tensor.const_data_ptr<std::int64_t>(),
      static_cast<std::size_t>(tensor.numel())};
}

/// Writes a table of a nested tensor: sizes, strides or offsets.
bool write_table(Writer& out, const at::Tensor& table) {
  if (!table.device().is_cpu() || !table.is_contiguous()) {
    return false;
  }
  // The tables of an empty nested tensor are float tensors.
  const bool is_empty = table.scalar_type() != at::kLong;
  out.put_numbers(is_empty ? at::IntArrayRef() : table.sizes());
  out.put_numbers(is_empty ? at::IntArrayRef() : numbers_of(table));
  return true;
}

/// A table of a nested tensor in host memory.
struct Table {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> numbers;

  explicit Table(Reader& in)
      : sizes(in.get_numbers<std::int64_t>()),
        numbers(in.get_numbers<std::int64_t>()) {
    const bool fits = sizes.size() == 2 ? sizes[0] >= 0 && sizes[1] >= 0 &&
            sizes[0] <= kMaxNumbers && sizes[1] <= kMaxNumbers &&
            numbers.size() == static_cast<std::size_t>(sizes[0] * sizes[1])
        : sizes.size() == 1
        ? numbers.size() == static_cast<std::size_t>(sizes[0])
        : sizes.empty() && numbers.empty();
    if (!fits) {
      throw Malformed("a table of a nested tensor has an unexpected shape");
    }
  }

  at::Tensor on_host() const {
    return sizes.empty() ? at::ones({}, at::kCPU)
                         : make_host_tensor(numbers, sizes);
  }
  at::IntArrayRef row(std::size_t index) const {
    const auto columns = static_cast<std::size_t>(sizes[1]);
    return at::IntArrayRef(numbers).slice(index * columns, columns);
  }

 private:
  static constexpr std::int64_t kMaxNumbers = std::int64_t{1} << 31;
};

at::Tensor expect_component(
    at::Tensor&& tensor,
    std::optional<caffe2::TypeMeta> dtype = {}) {
  if (!is_component(tensor) || (dtype && tensor.dtype() != *dtype)) {
    throw Malformed("a component of a tensor has an unexpected dtype");
  }
  return std::move(tensor);
}

bool has_zero(at::IntArrayRef sizes) {
  return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
}

/// Whether the indices and values of a COO tensor are consistent: one column of
/// indices per row of values, values with the dense sizes, and no indices if
/// there are no elements.
bool fit_sparse(
    at::IntArrayRef sizes,
    std::int64_t sparse, // number of sparse dimensions
    const at::Tensor& indices,
    const at::Tensor& values) {
  if (sparse < 0 || sparse > static_cast<std::int64_t>(sizes.size())) {
    return false;
  }
  const auto dense = static_cast<std::size_t>(sparse);
  return indices.scalar_type() == at::kLong && indices.dim() == 2 &&
      indices.size(0) == sparse && values.dim() > 0 &&
      values.size(0) == indices.size(1) &&
      values.sizes().slice(1) == sizes.slice(dense) &&
      (indices.size(1) == 0 || !has_zero(sizes.slice(0, dense)));
}

bool are_indices(const at::Tensor& tensor) {
  return (tensor.scalar_type() == at::kLong ||
          tensor.scalar_type() == at::kInt) &&
      tensor.dim() > 0 && (tensor.stride(-1) == 1 || tensor.size(-1) <= 1);
}

/// Whether the components of a compressed tensor are consistent: one row or
/// column of blocks per pair of adjacent compressed indices, one plain index
/// per block, for each matrix of a batch, and no blocks if there are no
/// elements. Without blocks, each element counts as a block.
bool fit_compressed(
    c10::Layout layout,
    at::IntArrayRef sizes,
    const at::Tensor& compressed,
    const at::Tensor& plain,
    const at::Tensor& values) {
  if (!are_indices(compressed) || !are_indices(plain) ||
      compressed.dim() != plain.dim() || compressed.dtype() != plain.dtype()) {
    return false;
  }
  const auto batch = static_cast<std::size_t>(compressed.dim() - 1);
  const bool has_blocks =
      layout == c10::kSparseBsr || layout == c10::kSparseBsc;
  const std::size_t dense = batch + (has_blocks ? 3 : 1); // of the values
  const at::IntArrayRef of_values = values.sizes();
  if (of_values.size() < dense ||
      sizes.size() != batch + 2 + of_values.size() - dense) {
    return false;
  }
  const at::IntArrayRef batches = sizes.slice(0, batch);
  if (compressed.sizes().slice(0, batch) != batches ||
      plain.sizes().slice(0, batch) != batches ||
      of_values.slice(0, batch) != batches ||
      of_values[batch] != plain.sizes()[batch] ||
      (of_values[batch] > 0 && has_zero(sizes.slice(batch, 2))) ||
      of_values.slice(dense) != sizes.slice(batch + 2)) {
    return false;
  }
  std::int64_t blocks[2]; // per column, and per row
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t block = has_blocks ? of_values[batch + 1 + i] : 1;
    if (block <= 0 || sizes[batch + i] % block != 0) {
      return false;
    }
    blocks[i] = sizes[batch + i] / block;
  }
  const bool by_rows = layout == c10::kSparseCsr || layout == c10::kSparseBsr;
  return compressed.sizes()[batch] == blocks[by_rows ? 0 : 1] + 1;
}

/// Whether the components of a sparse tensor are valid and consistent with its
/// sizes.
bool fit(const c10::TensorImpl& tensor) {
  const std::vector<at::Tensor> parts = components_of(tensor);
  if (!std::all_of(parts.begin(), parts.end(), &is_component)) {
    return false;
  }
  if (tensor.is_sparse()) {
    const auto& impl = as<SparseTensorImpl>(tensor);
    return fit_sparse(impl.sizes(), impl.sparse_dim(), parts[0], parts[1]);
  }
  const auto& impl = as<SparseCsrTensorImpl>(tensor);
  return fit_compressed(
      impl.layout_impl(), impl.sizes(), parts[0], parts[1], parts[2]);
}

} // namespace

// ---- writing ----------------------------------------------------------------

bool ValueWriter::write_composed(const at::Tensor& tensor) {
  if (!tensor.is_nested() && !fit(*tensor.unsafeGetTensorImpl())) {
    return false;
  }
  if (tensor.is_sparse()) {
    const auto& impl = impl_as<SparseTensorImpl>(tensor);
    out_.put(ComposedTag::kSparse);
    out_.put(tensor.scalar_type());
    out_.put_numbers(impl.sizes());
    out_.put(impl.sparse_dim());
    out_.put(static_cast<std::uint8_t>(impl.coalesced()));
  } else if (tensor.is_nested()) {
    const auto& impl = impl_as<NestedTensorImpl>(tensor);
    out_.put(ComposedTag::kNested);
    if (!write_table(out_, impl.get_nested_sizes()) ||
        !write_table(out_, impl.get_nested_strides()) ||
        !write_table(out_, impl.get_storage_offsets())) {
      return false;
    }
  } else {
    const auto& impl = impl_as<SparseCsrTensorImpl>(tensor);
    out_.put(ComposedTag::kCompressed);
    out_.put(impl.layout_impl());
    out_.put(tensor.scalar_type());
    out_.put_numbers(impl.sizes());
  }
  for (const at::Tensor& component :
       components_of(*tensor.unsafeGetTensorImpl())) {
    if (!write_tensor(component)) {
      return false;
    }
  }
  return true;
}

// ---- reading ----------------------------------------------------------------

at::Tensor ValueReader::read_composed() {
  switch (in_.get_enum<ComposedTag>()) {
    case ComposedTag::kSparse:
      return read_sparse();
    case ComposedTag::kCompressed:
      return read_compressed();
    case ComposedTag::kNested:
      return read_nested();
  }
  throw Malformed("unknown tensor tag");
}

at::Tensor ValueReader::read_sparse() {
  const auto dtype = c10::scalarTypeToTypeMeta(read_dtype(in_));
  const auto sizes = read_sizes(in_);
  const auto sparse = in_.get<std::int64_t>();
  const bool coalesced = in_.get_flag();
  const at::Tensor indices = expect_component(read_tensor());
  const at::Tensor values = expect_component(read_tensor(), dtype);
  if (!fit_sparse(sizes, sparse, indices, values)) {
    throw Malformed(
        "the components of a sparse tensor have inconsistent shapes");
  }
  at::Tensor made = make_sparse(kHost, dtype);
  auto& impl = impl_as<SparseTensorImpl>(made);
  impl.raw_resize_(
      sparse, static_cast<std::int64_t>(sizes.size()) - sparse, sizes);
  impl.set_indices_and_values_unsafe(indices, values);
  impl.set_coalesced(coalesced);
  return made;
}

at::Tensor ValueReader::read_compressed() {
  const auto layout = static_cast<c10::Layout>(in_.get<std::int8_t>());
  if (layout != c10::kSparseCsr && layout != c10::kSparseCsc &&
      layout != c10::kSparseBsr && layout != c10::kSparseBsc) {
    throw Malformed("unknown tensor layout");
  }
  const auto dtype = c10::scalarTypeToTypeMeta(read_dtype(in_));
  const auto sizes = read_sizes(in_);
  const at::Tensor compressed = expect_component(read_tensor());
  const at::Tensor plain = expect_component(read_tensor());
  const at::Tensor values = expect_component(read_tensor(), dtype);
  if (!fit_compressed(layout, sizes, compressed, plain, values)) {
    throw Malformed(
        "the components of a sparse tensor have inconsistent shapes");
  }
  at::Tensor made = make_compressed(kHost, layout, dtype);
  impl_as<SparseCsrTensorImpl>(made).set_member_tensors(
      compressed, plain, values, sizes);
  return made;
}

at::Tensor ValueReader::read_nested() {
  const Table sizes(in_);
  const Table strides(in_);
  const Table offsets(in_);
  const at::Tensor buffer = expect_component(read_tensor());
  const std::size_t count = offsets.numbers.size();
  // Kernels read the first row of a table that has columns.
  const bool has_rows = sizes.sizes.size() == 2 &&
      sizes.sizes[0] == static_cast<std::int64_t>(count) &&
      (count > 0 || sizes.sizes[1] == 0);
  const bool fits = offsets.sizes.size() == 1 && sizes.sizes == strides.sizes &&
      (has_rows || (count == 0 && sizes.sizes.empty()));
  if (!fits || buffer.dim() != 1) {
    throw Malformed(
        "the sizes of a nested tensor are inconsistent with its buffer");
  }
  for (std::size_t i = 0; i < count; ++i) {
    check_extent(
        sizes.row(i),
        strides.row(i),
        offsets.numbers[i],
        buffer.itemsize(),
        buffer.storage().nbytes()); // a nested tensor has only the storage
  }
  return at::detail::make_tensor<NestedTensorImpl>(
      buffer, sizes.on_host(), strides.on_host(), offsets.on_host());
}

} // namespace openreg::aten::codec
