// SPDX-License-Identifier: BSD-3-Clause
// The device type of this library and its dispatch keys: PrivateUse1, or CUDA
// with OPENREG_DEVICE=cuda. Builds of PyTorch without CUDA leave its keys free.
// The choice is made once, when the library is loaded.
#pragma once

#include "base/export.h"

#include <c10/core/Device.h>
#include <c10/core/DispatchKeySet.h>

#include <string>

namespace openreg::aten {

/// Whether OPENREG_DEVICE is cuda.
OPENREG_ATEN_API bool is_cuda_chosen();

inline const bool kIsCuda = is_cuda_chosen();
inline const c10::DeviceType kDeviceType =
    kIsCuda ? c10::kCUDA : c10::kPrivateUse1;
inline const c10::BackendComponent kBackend = kIsCuda
    ? c10::BackendComponent::CUDABit
    : c10::BackendComponent::PrivateUse1Bit;

/// Returns the device's key for a functionality, such as Sparse.
inline c10::DispatchKey key_for(c10::DispatchKey functionality) {
  return c10::toRuntimePerBackendFunctionalityKey(functionality, kBackend);
}

inline const c10::DispatchKey kDenseKey = key_for(c10::DispatchKey::Dense);
inline const c10::DispatchKey kAutogradKey =
    key_for(c10::DispatchKey::AutogradFunctionality);
inline const c10::DispatchKey kSparseKey = key_for(c10::DispatchKey::Sparse);
inline const c10::DispatchKey kSparseCsrKey =
    key_for(c10::DispatchKey::SparseCsr);
inline const c10::DispatchKey kNestedKey =
    key_for(c10::DispatchKey::NestedTensor);
inline const c10::DispatchKey kQuantizedKey =
    key_for(c10::DispatchKey::Quantized);
inline const c10::DispatchKeySet kDenseKeySet{kDenseKey};

/// Returns the name of the device type, such as "openreg".
inline std::string device_type_name() {
  return c10::DeviceTypeName(kDeviceType, /*lower_case=*/true);
}

/// The first word of errors.
inline const char* const kErrorName = kIsCuda ? "CUDA" : "OpenReg";

/// Sets the function of a DispatchStub for the device.
template <typename Stub>
void set_stub(Stub& stub, typename Stub::FnPtr function) {
  if (kIsCuda) {
    stub.set_cuda_dispatch_ptr(function);
  } else {
    stub.set_privateuse1_dispatch_ptr(function);
  }
}

} // namespace openreg::aten

/// MAKE_TORCH_LIBRARY_IMPL with a key of this file.
#define OPENREG_LIBRARY_IMPL(space, key) \
  torch::Library(torch::Library::IMPL, #space, key, __FILE__, __LINE__)
