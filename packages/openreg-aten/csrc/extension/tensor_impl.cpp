// SPDX-License-Identifier: BSD-3-Clause
// A custom TensorImpl: a matrix stored in tiles, as matrix units read them.
// Strides cannot describe its element addresses, so the class has neither
// strides nor a storage. Code without support for the class fails instead of
// reading values in the wrong order. Only to_tiled() creates these tensors.
#include "extension/tensor_impl.h"

#include "base/keys.h"
#include "base/mechanism.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/constant_pad_nd.h>
#include <c10/core/TensorImpl.h>
#include <torch/library.h>

#include <utility>

namespace openreg::aten {
namespace {

class TiledTensorImpl final : public c10::TensorImpl {
 public:
  /// `tiles` has the shape: rows of tiles, columns of tiles, rows per tile,
  /// columns per tile.
  TiledTensorImpl(at::Tensor tiles, at::IntArrayRef sizes)
      : TensorImpl(kDenseKeySet, tiles.dtype(), tiles.device()),
        tiles_(std::move(tiles)) {
    set_storage_access_should_throw();
    set_custom_sizes_strides(SizesStridesPolicy::CustomStrides);
    sizes_and_strides_.set_sizes(sizes);
    refresh_numel();
  }

  const at::Tensor& tiles() const {
    return tiles_;
  }

  // Called by detach(), x.data, Parameter(x) and saved tensors.
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(
      const c10::VariableVersion& version,
      bool allow_metadata_change) const override {
    auto made = c10::make_intrusive<TiledTensorImpl>(tiles_, sizes());
    copy_tensor_metadata(this, made.get(), version, allow_metadata_change);
    return made;
  }
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(
      c10::VariableVersion&& version,
      bool allow_metadata_change) const override {
    return shallow_copy_and_detach(
        std::as_const(version), allow_metadata_change);
  }
  // Called by x.data = y. The mechanism shallow_copy accepts only this class.
  void shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& from) override {
    const auto* other = dynamic_cast<const TiledTensorImpl*>(from.get());
    TORCH_CHECK(other != nullptr, "expected a tiled tensor");
    copy_tensor_metadata(
        other, this, version_counter(), allow_tensor_metadata_change());
    tiles_ = other->tiles_;
    refresh_numel();
  }
  void release_resources() override {
    TensorImpl::release_resources();
    tiles_.reset();
  }

 private:
  const char* tensorimpl_type_name() const override {
    return "TiledTensorImpl";
  }
  at::IntArrayRef strides_custom() const override {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false,
        "a tiled tensor has no strides, which the operator needs: "
        "call torch.openreg.from_tiled(tensor) first");
  }
  c10::SymIntArrayRef sym_strides_custom() const override {
    return c10::fromIntArrayRefKnownNonNegative(strides_custom());
  }
  c10::SymBool sym_is_contiguous_custom(at::MemoryFormat) const override {
    return false;
  }
  c10::SymBool sym_is_non_overlapping_and_dense_custom() const override {
    return false;
  }
  bool is_strides_like_custom(at::MemoryFormat) const override {
    return false;
  }

  at::Tensor tiles_;
};

const TiledTensorImpl* as_tiled(const at::Tensor& tensor) {
  return dynamic_cast<const TiledTensorImpl*>(tensor.unsafeGetTensorImpl());
}

int64_t tiles_for(int64_t size, int64_t tile) {
  return (size + tile - 1) / tile;
}

at::Tensor to_tiled(const at::Tensor& matrix, int64_t rows, int64_t columns) {
  TORCH_CHECK(
      matrix.dim() == 2 && as_tiled(matrix) == nullptr,
      "to_tiled: expected a strided matrix, but got ",
      as_tiled(matrix) ? "a tiled tensor"
                       : std::to_string(matrix.dim()) + " dimensions");
  TORCH_CHECK(
      rows > 0 && columns > 0,
      "to_tiled: expected a tile of at least 1 row and 1 column, got ",
      rows,
      " x ",
      columns);
  TORCH_CHECK(
      !(at::GradMode::is_enabled() && matrix.requires_grad()),
      "to_tiled is not differentiable: expected a tensor without "
      "requires_grad, such as tensor.detach()");
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const int64_t down = tiles_for(matrix.size(0), rows);
  const int64_t across = tiles_for(matrix.size(1), columns);
  const at::Tensor padded = at::constant_pad_nd(
      matrix,
      {0, across * columns - matrix.size(1), 0, down * rows - matrix.size(0)});
  return at::detail::make_tensor<TiledTensorImpl>(
      padded.reshape({down, rows, across, columns})
          .transpose(1, 2)
          .contiguous(),
      matrix.sizes());
}

at::Tensor from_tiled(const at::Tensor& tensor) {
  const TiledTensorImpl* tiled = as_tiled(tensor);
  TORCH_CHECK(
      tiled != nullptr,
      "from_tiled: expected a tiled tensor, but got a tensor with layout ",
      tensor.layout(),
      "; call torch.openreg.to_tiled(tensor) first");
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::Tensor& tiles = tiled->tiles();
  return tiles.transpose(1, 2)
      .reshape({tiles.size(0) * tiles.size(2), tiles.size(1) * tiles.size(3)})
      .narrow(0, 0, tensor.size(0))
      .narrow(1, 0, tensor.size(1))
      .clone(at::MemoryFormat::Contiguous);
}

} // namespace

std::optional<TileShape> tile_shape(const at::Tensor& tensor) {
  const TiledTensorImpl* tiled = as_tiled(tensor);
  if (tiled == nullptr) {
    return std::nullopt;
  }
  return TileShape{tiled->tiles().size(2), tiled->tiles().size(3)};
}

OPENREG_MECHANISM(
    tensor_impl,
    "a subclass of c10::TensorImpl",
    "tensors are PyTorch's own, without custom layouts") {
  static torch::Library operators(
      torch::Library::FRAGMENT, "openreg", std::nullopt, __FILE__, __LINE__);
  operators.def("to_tiled(Tensor matrix, int rows, int columns) -> Tensor");
  operators.def("from_tiled(Tensor tiled) -> Tensor");
  static auto library = OPENREG_LIBRARY_IMPL(openreg, kDenseKey);
  library.impl("to_tiled", TORCH_FN(to_tiled));
  library.impl("from_tiled", TORCH_FN(from_tiled));
}

} // namespace openreg::aten
