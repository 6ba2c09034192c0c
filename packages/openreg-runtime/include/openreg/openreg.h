/* SPDX-License-Identifier: BSD-3-Clause */
/* The C API of the simulated accelerator.
 *
 * Names, argument order and meaning follow the CUDA runtime with the prefix
 * `or`. Every function may be called from any thread, none throws, and every
 * one that can fail returns an orError_t that must be looked at. The text that
 * belongs to the last failure of the calling thread is orGetErrorMessage().
 *
 * Sizes are bytes. Device pointers fault when the host dereferences them: only
 * a kernel may reach the data, at orGetKernelPointer(). */
#ifndef OPENREG_OPENREG_H
#define OPENREG_OPENREG_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#if defined(OPENREG_BUILDING)
#define OPENREG_EXPORT __declspec(dllexport)
#else
#define OPENREG_EXPORT __declspec(dllimport)
#endif
#else
#define OPENREG_EXPORT __attribute__((visibility("default")))
#endif

#if defined(__cplusplus)
#define OPENREG_NODISCARD [[nodiscard]]
#define OPENREG_NOEXCEPT noexcept
extern "C" {
#else
#define OPENREG_NODISCARD __attribute__((warn_unused_result))
#define OPENREG_NOEXCEPT
#endif

#define OPENREG_API OPENREG_NODISCARD OPENREG_EXPORT

/* Error codes. A code never changes its number. */
typedef enum orError_t {
  orSuccess = 0,
  orErrorUnknown = 1,
  orErrorNotReady = 2,
  orErrorInvalidValue = 3,
  orErrorInvalidDevice = 4,
  orErrorInvalidHandle = 5,
  orErrorMemoryAllocation = 6,
  orErrorNotPermitted = 7,
  orErrorLaunchFailure = 8,
  orErrorNotSupported = 9,
  orErrorInitialization = 10
} orError_t;

typedef enum orMemcpyKind {
  orMemcpyHostToHost = 0,
  orMemcpyHostToDevice = 1,
  orMemcpyDeviceToHost = 2,
  orMemcpyDeviceToDevice = 3,
  orMemcpyDefault = 4
} orMemcpyKind;

typedef enum orMemoryType {
  orMemoryTypeUnmanaged = 0,
  orMemoryTypeHost = 1,
  orMemoryTypeDevice = 2
} orMemoryType;

/* What is known of a pointer: its kind, the device that it belongs to (-1 for
 * unmanaged memory), and the start and size in bytes of the block around it. */
typedef struct orPointerAttributes {
  orMemoryType type;
  int device;
  void* pointer;
  size_t size;
} orPointerAttributes;

typedef struct orDeviceProp {
  char name[64];
  size_t totalGlobalMem; /* bytes */
  int multiProcessorCount;
  int major;
  int minor;
} orDeviceProp;

/* One setting of the environment: its value and where that came from
 * ("default" or "environment"). */
typedef struct orSetting {
  const char* name;
  const char* value;
  const char* source;
  const char* description;
} orSetting;

/* Opaque handles. A null stream is the default stream of the current device. */
typedef struct orStream* orStream_t;
typedef struct orEvent* orEvent_t;

#define orEventDefault 0x0u
#define orEventDisableTiming 0x2u
#define orEventEnableTiming 0x8u

/* A kernel receives its argument block; it reaches device memory through
 * orGetKernelPointer(). */
typedef void (*orKernel_t)(void* args);

/* ---- errors ------------------------------------------------------------ */

/* Returns the last error of this thread and forgets it. */
OPENREG_API orError_t orGetLastError(void) OPENREG_NOEXCEPT;
/* Returns the last error of this thread. */
OPENREG_API orError_t orPeekAtLastError(void) OPENREG_NOEXCEPT;
/* The name of a code, "orErrorInvalidValue"; never null. */
OPENREG_EXPORT const char* orGetErrorName(orError_t error) OPENREG_NOEXCEPT;
/* What a code means in one phrase; never null. */
OPENREG_EXPORT const char* orGetErrorString(orError_t error) OPENREG_NOEXCEPT;
/* The text of this thread's last failure: function, argument, value, device.
 * Valid until this thread's next failing call; empty if there was none. */
OPENREG_EXPORT const char* orGetErrorMessage(void) OPENREG_NOEXCEPT;

/* ---- settings ---------------------------------------------------------- */

/* The number of settings that orGetSetting() knows. */
OPENREG_API orError_t orGetSettingCount(int* count) OPENREG_NOEXCEPT;
/* The setting at `index`. */
OPENREG_API orError_t orGetSetting(int index, orSetting* setting)
    OPENREG_NOEXCEPT;

/* ---- devices ----------------------------------------------------------- */

/* The number of devices (OPENREG_DEVICE_COUNT). Starts nothing. */
OPENREG_API orError_t orGetDeviceCount(int* count) OPENREG_NOEXCEPT;
/* The current device of this thread. */
OPENREG_API orError_t orGetDevice(int* device) OPENREG_NOEXCEPT;
/* Makes `device` current for this thread. */
OPENREG_API orError_t orSetDevice(int device) OPENREG_NOEXCEPT;
OPENREG_API orError_t orGetDeviceProperties(orDeviceProp* prop, int device)
    OPENREG_NOEXCEPT;
/* Waits for all work of the current device; returns, and forgets, the failure
 * that a kernel of one of its streams left. */
OPENREG_API orError_t orDeviceSynchronize(void) OPENREG_NOEXCEPT;
/* Reserves the address space now instead of at the first allocation. */
OPENREG_API orError_t orInit(void) OPENREG_NOEXCEPT;
/* Writes 1 if the devices are in use in this process, else 0. */
OPENREG_API orError_t orIsInitialized(int* initialized) OPENREG_NOEXCEPT;
/* Writes 1 in a child that was forked after the parent began to use the
 * devices, else 0. Every other call fails there with orErrorInitialization. */
OPENREG_API orError_t orIsInBadFork(int* badFork) OPENREG_NOEXCEPT;

/* ---- memory ------------------------------------------------------------ */

/* Allocates `size` bytes on the current device, aligned to 512; size 0 gives a
 * null pointer. orErrorMemoryAllocation past the device's capacity. */
OPENREG_API orError_t orMalloc(void** devPtr, size_t size) OPENREG_NOEXCEPT;
/* Frees a block after all work of its device, whose failures stay for the next
 * wait; null is allowed. */
OPENREG_API orError_t orFree(void* devPtr) OPENREG_NOEXCEPT;
/* As orFree for a block that no enqueued work uses, which the caller knows:
 * waits for nothing, so a kernel may call it too. */
OPENREG_API orError_t orFreeUnused(void* devPtr) OPENREG_NOEXCEPT;
/* Allocates pinned host memory, which copies can use asynchronously. */
OPENREG_API orError_t orMallocHost(void** hostPtr, size_t size)
    OPENREG_NOEXCEPT;
/* Frees pinned memory at once: work that uses it must be done. */
OPENREG_API orError_t orFreeHost(void* hostPtr) OPENREG_NOEXCEPT;
/* Copies after all work of the device's default stream and waits. Ranges are
 * checked: a copy that leaves its block is orErrorInvalidValue. */
OPENREG_API orError_t
orMemcpy(void* dst, const void* src, size_t count, orMemcpyKind kind)
    OPENREG_NOEXCEPT;
/* As orMemcpy in the order of `stream`, without waiting. */
OPENREG_API orError_t orMemcpyAsync(
    void* dst,
    const void* src,
    size_t count,
    orMemcpyKind kind,
    orStream_t stream) OPENREG_NOEXCEPT;
/* Sets `count` bytes of device memory to `value` and waits. */
OPENREG_API orError_t orMemset(void* devPtr, int value, size_t count)
    OPENREG_NOEXCEPT;
/* As orMemset in the order of `stream`, without waiting. */
OPENREG_API orError_t
orMemsetAsync(void* devPtr, int value, size_t count, orStream_t stream)
    OPENREG_NOEXCEPT;
/* Free and total bytes of the current device. */
OPENREG_API orError_t orMemGetInfo(size_t* free, size_t* total)
    OPENREG_NOEXCEPT;
/* Describes any pointer, also one inside a block; a pointer that the runtime
 * does not know is orMemoryTypeUnmanaged, not an error. */
OPENREG_API orError_t orPointerGetAttributes(
    orPointerAttributes* attributes,
    const void* ptr) OPENREG_NOEXCEPT;
/* Opens the pages of the block at `devPtr` to the host, for debugging. */
OPENREG_API orError_t orMemoryUnprotect(void* devPtr) OPENREG_NOEXCEPT;
/* Closes them again. */
OPENREG_API orError_t orMemoryProtect(void* devPtr) OPENREG_NOEXCEPT;
/* Where kernels find the data of a device pointer: the same memory at a fixed
 * distance, the same for all devices of the process. */
OPENREG_API orError_t orGetKernelPointer(void** kernelPtr, const void* devPtr)
    OPENREG_NOEXCEPT;
/* The address range [*begin, *end) of all device pointers of this process, and
 * the distance in bytes from a device pointer to its kernel pointer. */
OPENREG_API orError_t orGetAddressRange(
    void** begin,
    void** end,
    ptrdiff_t* kernelDistance) OPENREG_NOEXCEPT;

/* ---- streams ----------------------------------------------------------- */

OPENREG_API orError_t orStreamCreate(orStream_t* stream) OPENREG_NOEXCEPT;
/* `flags` must be 0. A priority outside the range is clamped into it. */
OPENREG_API orError_t orStreamCreateWithPriority(
    orStream_t* stream,
    unsigned int flags,
    int priority) OPENREG_NOEXCEPT;
/* Ends the handle at once; work that was enqueued still runs. */
OPENREG_API orError_t orStreamDestroy(orStream_t stream) OPENREG_NOEXCEPT;
/* The default stream of a device as a handle of its own. */
OPENREG_API orError_t orStreamGetDefault(orStream_t* stream, int device)
    OPENREG_NOEXCEPT;
/* orSuccess when all work is done, orErrorNotReady while some is queued or
 * running, or the failure that a kernel of the stream left. */
OPENREG_API orError_t orStreamQuery(orStream_t stream) OPENREG_NOEXCEPT;
/* Waits for all work enqueued so far; returns, and forgets, the failure that a
 * kernel of the stream left. */
OPENREG_API orError_t orStreamSynchronize(orStream_t stream) OPENREG_NOEXCEPT;
/* Later work of `stream` waits for what `event` recorded last; an event that
 * was never recorded holds nothing. `flags` must be 0. */
OPENREG_API orError_t orStreamWaitEvent(
    orStream_t stream,
    orEvent_t event,
    unsigned int flags) OPENREG_NOEXCEPT;
OPENREG_API orError_t orStreamGetPriority(orStream_t stream, int* priority)
    OPENREG_NOEXCEPT;
OPENREG_API orError_t orStreamGetDevice(orStream_t stream, int* device)
    OPENREG_NOEXCEPT;
/* A greater priority is a smaller number, as in CUDA. */
OPENREG_API orError_t orDeviceGetStreamPriorityRange(
    int* leastPriority,
    int* greatestPriority) OPENREG_NOEXCEPT;
/* Enqueues `kernel(args)`. When it has run, `cleanup(args)` is called if it is
 * not null; neither may wait for the stream. A kernel that throws leaves
 * orErrorLaunchFailure on the stream. If the launch itself fails, `args` stay
 * with the caller. */
OPENREG_API orError_t orLaunchKernel(
    orStream_t stream,
    orKernel_t kernel,
    void* args,
    orKernel_t cleanup) OPENREG_NOEXCEPT;
/* Runs `kernel(args)` in stream order and returns when it has run, on the
 * calling thread. A kernel that throws is orErrorLaunchFailure at once. */
OPENREG_API orError_t orLaunchKernelBlocking(
    orStream_t stream,
    orKernel_t kernel,
    void* args) OPENREG_NOEXCEPT;

/* ---- events ------------------------------------------------------------ */

OPENREG_API orError_t orEventCreate(orEvent_t* event) OPENREG_NOEXCEPT;
OPENREG_API orError_t
orEventCreateWithFlags(orEvent_t* event, unsigned int flags) OPENREG_NOEXCEPT;
OPENREG_API orError_t orEventRecord(orEvent_t event, orStream_t stream)
    OPENREG_NOEXCEPT;
/* orSuccess when the last record was reached, or nothing was recorded;
 * orErrorNotReady otherwise. */
OPENREG_API orError_t orEventQuery(orEvent_t event) OPENREG_NOEXCEPT;
OPENREG_API orError_t orEventSynchronize(orEvent_t event) OPENREG_NOEXCEPT;
/* Milliseconds between two reached records of events with timing. */
OPENREG_API orError_t
orEventElapsedTime(float* ms, orEvent_t start, orEvent_t end) OPENREG_NOEXCEPT;
OPENREG_API orError_t orEventDestroy(orEvent_t event) OPENREG_NOEXCEPT;

#if defined(__cplusplus)
} /* extern "C" */

#include <openreg/openreg.hpp>
#endif

#endif /* OPENREG_OPENREG_H */
