// SPDX-License-Identifier: BSD-3-Clause
// The results of a replayed graph. Each replay returns new tensors over the
// graph's memory. Before the next replay, tensors that are still in use are
// moved to separate memory.
#include "bindings/results.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StorageImpl.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace openreg::inductor {
namespace {

/// Keeps a block of the graph's memory alive while tensors use it.
using Block = std::shared_ptr<c10::Storage>;

void forget(void* block) {
  delete static_cast<Block*>(block);
}

c10::DataPtr point_to(const Block& block) {
  return {block->mutable_data(), new Block(block), &forget, block->device()};
}

/// Moves a storage to a copy of its bytes, in the order of the current stream.
void move_out(c10::StorageImpl& storage) {
  const c10::Device device = storage.device();
  const auto bytes = static_cast<int64_t>(storage.nbytes());
  const auto options = at::TensorOptions(device).dtype(at::kByte);
  at::Tensor copy = at::empty({bytes}, options);
  copy.copy_(at::from_blob(storage.mutable_data(), {bytes}, options));
  c10::StorageImpl* made = copy.storage().unsafeGetStorageImpl();
  storage.set_data_ptr_noswap(
      made->set_data_ptr(c10::DataPtr(nullptr, device)));
}

class GraphResults {
 public:
  /// Takes the result tensors of a capture.
  explicit GraphResults(const std::vector<at::Tensor>& tensors) {
    for (const at::Tensor& tensor : tensors) {
      const auto known =
          std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& each) {
            return each->is_alias_of(tensor.storage());
          });
      results_.push_back(
          {tensor.detach(), static_cast<size_t>(known - blocks_.begin())});
      if (known == blocks_.end()) {
        blocks_.push_back(std::make_shared<c10::Storage>(tensor.storage()));
      }
    }
  }

  /// Moves the tensors of the last replay that are still in use to separate
  /// memory; the current stream copies them.
  void keep_live() {
    for (const auto& each : given_) {
      if (const auto live = each.lock()) {
        // By a resize or by set_data.
        const bool moved = std::none_of(
            blocks_.begin(), blocks_.end(), [&](const Block& block) {
              return block->data() == live->data();
            });
        if (!moved && live->nbytes() > 0) {
          move_out(*live);
        }
      }
    }
    given_.clear();
  }

  /// Creates the tensors of a replay.
  std::vector<at::Tensor> give() {
    std::vector<c10::Storage> storages;
    storages.reserve(blocks_.size());
    for (const Block& block : blocks_) {
      c10::StorageImpl& known = *block->unsafeGetStorageImpl();
      storages.emplace_back(
          c10::make_storage_impl(
              c10::StorageImpl::use_byte_size_t(),
              known.sym_nbytes(),
              point_to(block),
              known.allocator(),
              /*resizable=*/true,
              known.device()));
      given_.emplace_back(storages.back().getWeakStorageImpl());
    }
    std::vector<at::Tensor> made;
    made.reserve(results_.size());
    for (const Result& each : results_) {
      auto impl = each.tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(
          c10::VariableVersion(0), /*allow_tensor_metadata_change=*/true);
      impl->set_storage_keep_dtype(storages[each.block]);
      made.emplace_back(std::move(impl));
    }
    return made;
  }

 private:
  struct Result {
    at::Tensor tensor;
    size_t block;
  };

  std::vector<Block> blocks_;
  std::vector<Result> results_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> given_;
};

} // namespace

void add_graph_results(PyObject* module) {
  py::class_<GraphResults>(
      py::reinterpret_borrow<py::module_>(module),
      "GraphResults",
      "The results of a captured graph, whose memory each replay writes anew.")
      .def(py::init<const std::vector<at::Tensor>&>())
      .def(
          "keep_live",
          &GraphResults::keep_live,
          "Copies what the last replay gave, and is in use, to other memory.",
          py::call_guard<py::gil_scoped_release>())
      .def("give", &GraphResults::give, "The tensors of a replay.");
}

} // namespace openreg::inductor
