// SPDX-License-Identifier: BSD-3-Clause
// The CUDA functions that AOTInductor's runtime calls, implemented with
// libopenreg.
//
// That runtime is source text compiled into each model. Macros select the CPU,
// CUDA or two other devices. libopenreg has CUDA's functions with another
// prefix, so the CUDA variant works, including copies, events and errors.
#pragma once

#include <openreg/openreg.h>

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

using cudaError_t = orError_t;
constexpr cudaError_t cudaSuccess = orSuccess;
constexpr cudaError_t cudaErrorNotReady = orErrorNotReady;

inline const char* cudaGetErrorString(cudaError_t error) {
  return error == orSuccess ? "" : orGetErrorMessage();
}
inline cudaError_t cudaGetLastError() {
  return orGetLastError();
}

inline cudaError_t cudaGetDevice(int* device) {
  return orGetDevice(device);
}
inline cudaError_t cudaSetDevice(int device) {
  return orSetDevice(device);
}

// Of a pointer's attributes, the runtime reads the type.
constexpr orMemoryType cudaMemoryTypeUnregistered = orMemoryTypeUnmanaged;
struct cudaPointerAttributes {
  orMemoryType type = cudaMemoryTypeUnregistered;
};
inline cudaError_t cudaPointerGetAttributes(
    cudaPointerAttributes* attributes,
    const void* pointer) {
  orPointerAttributes found = OPENREG_POINTER_ATTRIBUTES_INIT;
  const orError_t error = orPointerGetAttributes(&found, pointer);
  attributes->type = found.type;
  return error;
}

using cudaMemcpyKind = orMemcpyKind;
constexpr cudaMemcpyKind cudaMemcpyHostToDevice = orMemcpyHostToDevice;
constexpr cudaMemcpyKind cudaMemcpyDefault = orMemcpyDefault;

inline cudaError_t cudaMalloc(void** pointer, size_t size) {
  return orMalloc(pointer, size);
}
inline cudaError_t cudaFree(void* pointer) {
  return orFree(pointer);
}
inline cudaError_t
cudaMemcpy(void* dst, const void* src, size_t size, cudaMemcpyKind kind) {
  return orMemcpy(dst, src, size, kind);
}

using cudaStream_t = orStream_t;
using cudaEvent_t = orEvent_t;

constexpr unsigned int cudaStreamNonBlocking = orStreamNonBlocking;
constexpr unsigned int cudaEventDisableTiming = orEventDisableTiming;

inline cudaError_t cudaStreamCreateWithFlags(
    cudaStream_t* stream,
    unsigned int flags) {
  return orStreamCreateWithPriority(stream, flags, 0);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return orStreamDestroy(stream);
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return orStreamSynchronize(stream);
}
inline cudaError_t cudaMemcpyAsync(
    void* dst,
    const void* src,
    size_t size,
    cudaMemcpyKind kind,
    cudaStream_t stream) {
  return orMemcpyAsync(dst, src, size, kind, stream);
}

inline cudaError_t cudaEventCreateWithFlags(
    cudaEvent_t* event,
    unsigned int flags) {
  return orEventCreateWithFlags(event, flags);
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDisableTiming);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return orEventDestroy(event);
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return orEventRecord(event, stream);
}
// AOTInductor queries this event for the end of a run. A failed run has ended,
// too: the next call that waits for its stream reports the error.
inline cudaError_t cudaEventQuery(cudaEvent_t event) {
  return orEventQuery(event) == orErrorNotReady ? orErrorNotReady : orSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const orError_t error = orEventSynchronize(event); // may be a timeout
  return cudaEventQuery(event) == orErrorNotReady ? error : orSuccess;
}

// Kernels are in the model's library: there are no modules to unload.
using CUmodule = void*;
enum CUresult { CUDA_SUCCESS = 0 };
inline CUresult cuModuleUnload(CUmodule /*module*/) {
  return CUDA_SUCCESS;
}
inline void cuGetErrorString(CUresult /*error*/, const char** text) {
  *text = nullptr;
}

// The wrapper defines it before it includes the runtime.
#define aoti_torch_device_type_cuda OPENREG_DEVICE_TYPE
