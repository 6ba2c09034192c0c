// SPDX-License-Identifier: BSD-3-Clause
// Keeps a pool of free CPU aliases per thread.
#include "alias/alias_pool.h"

#include "base/thread_local.h"
#include "memory/cpu_allocator.h"

#include <ATen/quantized/QTensorImpl.h>
#include <c10/core/InferenceMode.h>

#include <utility>

namespace openreg::aten {
namespace {

// The free aliases of a thread. It has no constructor and no destructor, so
// access needs no check and is safe while a thread ends.
// The list is linked, because a library has little thread-local memory.
struct FreeAliases {
  CpuAlias* first;
  size_t count;
  bool closed;
};
constexpr size_t kMaxFree = 128; // a fused step of 30 parameters uses 90
OPENREG_THREAD_LOCAL FreeAliases t_free;

/// Frees the aliases of a thread that ends.
struct Cleaner {
  Cleaner() = default;
  Cleaner(const Cleaner&) = delete;
  Cleaner& operator=(const Cleaner&) = delete;
  ~Cleaner() {
    t_free.closed = true;
    while (CpuAlias* alias = t_free.first) {
      t_free.first = alias->next_free;
      delete alias;
    }
    t_free.count = 0;
  }
};

c10::Storage make_alias_storage() {
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      0,
      c10::DataPtr(nullptr, c10::Device(c10::kCPU)),
      &kernel_cpu_allocator(),
      /*resizable=*/true);
}

CpuAliasPtr make_alias() {
  c10::Storage storage = make_alias_storage();
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage),
      c10::DispatchKeySet(c10::DispatchKey::CPU),
      caffe2::TypeMeta::Make<float>());
  return std::make_unique<CpuAlias>(
      CpuAlias{std::move(tensor), std::move(storage), nullptr});
}

/// Whether no other object references the alias, and the kernel left it
/// unchanged.
bool is_clean(const CpuAlias& alias) {
  const c10::TensorImpl& tensor = *alias.tensor.unsafeGetTensorImpl();
  const c10::StorageImpl& storage = *alias.storage.unsafeGetStorageImpl();
  return alias.tensor.use_count() == 1 && alias.tensor.weak_use_count() == 1 &&
      !alias.tensor.is_quantized() && !tensor._is_zerotensor() &&
      tensor.storage().unsafeGetStorageImpl() == &storage &&
      alias.storage.use_count() == 2 && storage.resizable() &&
      storage.data_ptr().get_context() == nullptr && // owns no buffer
      tensor.autograd_meta() == nullptr && !tensor.is_wrapped_number() &&
      !const_cast<c10::TensorImpl&>(tensor).is_inference();
}

} // namespace

CpuAliasPtr take_alias() {
  FreeAliases& free = t_free;
  if (C10_UNLIKELY(free.count == 0 || c10::InferenceMode::is_enabled())) {
    static thread_local const Cleaner cleaner;
    return make_alias();
  }
  CpuAliasPtr alias(free.first);
  free.first = alias->next_free;
  --free.count;
  return alias;
}

CpuAliasPtr make_quantized_alias(at::QuantizerPtr quantizer) {
  c10::Storage storage = make_alias_storage();
  at::Tensor tensor = at::detail::make_tensor<at::QTensorImpl>(
      c10::Storage(storage),
      c10::DispatchKeySet(c10::DispatchKey::QuantizedCPU),
      caffe2::TypeMeta::Make<c10::qint8>(),
      std::move(quantizer));
  return std::make_unique<CpuAlias>(
      CpuAlias{std::move(tensor), std::move(storage), nullptr});
}

CpuAliasPtr make_zero_alias() {
  c10::Storage storage = make_alias_storage();
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage),
      c10::DispatchKeySet(
          {c10::DispatchKey::CPU, c10::DispatchKey::ZeroTensor}),
      caffe2::TypeMeta::Make<float>());
  return std::make_unique<CpuAlias>(
      CpuAlias{std::move(tensor), std::move(storage), nullptr});
}

void leave_shared_storage(CpuAlias& alias) noexcept {
  c10::TensorImpl& impl = *alias.tensor.unsafeGetTensorImpl();
  if (C10_UNLIKELY(
          impl.storage().unsafeGetStorageImpl() !=
              alias.storage.unsafeGetStorageImpl() &&
          alias.tensor.use_count() == 1)) {
    impl.set_storage_keep_dtype(alias.storage);
  }
}

void recycle(CpuAliasPtr alias) noexcept {
  FreeAliases& free = t_free;
  if (C10_LIKELY(free.count < kMaxFree && !free.closed && is_clean(*alias))) {
    alias->next_free = free.first;
    free.first = alias.release();
    ++free.count;
  }
}

} // namespace openreg::aten
