// SPDX-License-Identifier: BSD-3-Clause
// The free views of each thread.
#include "kernel/view_pool.h"

#include "kernel/cpu_allocator.h"
#include "thread_local.h"

#include <ATen/quantized/QTensorImpl.h>
#include <c10/core/InferenceMode.h>

#include <array>
#include <utility>

namespace openreg::aten {
namespace {

// The free views of a thread. Without a constructor or destructor, access needs
// no check, and is safe while a thread ends.
struct FreeViews {
  std::array<View*, 16> views; // foreach operators present hundreds
  size_t count;
  bool closed;
};
OPENREG_THREAD_LOCAL FreeViews t_free;

/// Frees the views of a thread that ends.
struct Cleaner {
  Cleaner() = default;
  Cleaner(const Cleaner&) = delete;
  Cleaner& operator=(const Cleaner&) = delete;
  ~Cleaner() {
    t_free.closed = true;
    while (t_free.count > 0) {
      delete t_free.views[--t_free.count];
    }
  }
};

c10::Storage make_storage() {
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      0,
      c10::DataPtr(nullptr, c10::Device(c10::kCPU)),
      &kernel_cpu_allocator(),
      /*resizable=*/true);
}

ViewPtr make_view() {
  c10::Storage storage = make_storage();
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage),
      c10::DispatchKeySet(c10::DispatchKey::CPU),
      caffe2::TypeMeta::Make<float>());
  return std::make_unique<View>(View{std::move(tensor), std::move(storage)});
}

/// Whether nobody else can see the view, and the kernel left no mark on it.
bool is_clean(const View& view) {
  const c10::TensorImpl& tensor = *view.tensor.unsafeGetTensorImpl();
  const c10::StorageImpl& storage = *view.storage.unsafeGetStorageImpl();
  return view.tensor.use_count() == 1 && view.tensor.weak_use_count() == 1 &&
      !view.tensor.is_quantized() && !tensor._is_zerotensor() &&
      tensor.storage().unsafeGetStorageImpl() == &storage &&
      view.storage.use_count() == 2 && storage.resizable() &&
      storage.data_ptr().get_context() == nullptr && // owns no buffer
      tensor.autograd_meta() == nullptr && !tensor.is_wrapped_number() &&
      !const_cast<c10::TensorImpl&>(tensor).is_inference();
}

} // namespace

ViewPtr take_view() {
  FreeViews& free = t_free;
  if (C10_UNLIKELY(free.count == 0 || c10::InferenceMode::is_enabled())) {
    static thread_local const Cleaner cleaner;
    return make_view();
  }
  return ViewPtr(free.views[--free.count]);
}

ViewPtr make_quantized_view(at::QuantizerPtr quantizer) {
  c10::Storage storage = make_storage();
  at::Tensor tensor = at::detail::make_tensor<at::QTensorImpl>(
      c10::Storage(storage),
      c10::DispatchKeySet(c10::DispatchKey::QuantizedCPU),
      caffe2::TypeMeta::Make<c10::qint8>(),
      std::move(quantizer));
  return std::make_unique<View>(View{std::move(tensor), std::move(storage)});
}

ViewPtr make_zero_view() {
  c10::Storage storage = make_storage();
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage),
      c10::DispatchKeySet(
          {c10::DispatchKey::CPU, c10::DispatchKey::ZeroTensor}),
      caffe2::TypeMeta::Make<float>());
  return std::make_unique<View>(View{std::move(tensor), std::move(storage)});
}

void leave_shared_storage(View& view) noexcept {
  c10::TensorImpl& impl = *view.tensor.unsafeGetTensorImpl();
  if (C10_UNLIKELY(
          impl.storage().unsafeGetStorageImpl() !=
              view.storage.unsafeGetStorageImpl() &&
          view.tensor.use_count() == 1)) {
    impl.set_storage_keep_dtype(view.storage);
  }
}

void give_back(ViewPtr view) noexcept {
  FreeViews& free = t_free;
  if (C10_LIKELY(
          free.count < free.views.size() && !free.closed && is_clean(*view))) {
    free.views[free.count++] = view.release();
  }
}

} // namespace openreg::aten
