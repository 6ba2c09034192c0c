/* SPDX-License-Identifier: BSD-3-Clause */
/* The C API of the simulated accelerator.
 *
 * Names, argument order and meaning follow the CUDA runtime with the prefix
 * `or`. Every function may be called from any thread, none throws, and every
 * one that can fail returns an orError_t that must be looked at. The text that
 * belongs to the last failure of the calling thread is orGetErrorMessage().
 *
 * Sizes are bytes. Device pointers fault when the host dereferences them: only
 * a kernel may reach the data, at orGetKernelPointer().
 *
 * "Errors:" lists the codes of a function without their prefix orError. These
 * are not repeated there:
 *   Initialization    every function, in a child that was forked after the
 *                     parent began to use the devices
 *   InvalidValue      every function that needs the settings, while a variable
 *                     of the environment has a wrong value
 *   MemoryAllocation  every function, when the host has no memory left for it
 *   NotPermitted      in a kernel: what is said below
 *   NotSupported      every function that uses the devices, while another copy
 *                     of this library in the process uses them, whose pointers
 *                     mean nothing to this one (but OPENREG_ALLOW_COPIES=1)
 *   StreamCapture..., what uses a stream that is captured (see "graphs"), or an
 *   CapturedEvent     event that was recorded there
 *   Timeout           what enqueues work, when a full stream takes none in the
 *                     time that waits may last (orLimitWaitTimeout)
 *   Unknown           what waits for an event of another process, or for a
 *                     stream that does, when that process ended before it
 *                     reached the record; what enqueues work, when the system
 *                     starts no thread for it
 * [device] stands for DeviceLost, IllegalAddress and Assert, which a failed
 * device keeps: all these functions return the failure until orDeviceReset().
 * This also applies to the devices of pointer arguments. A call that a reset by
 * another thread overtakes returns DeviceLost. Once the process exits, waits
 * end with Timeout after 200 ms. With OPENREG_LAUNCH_BLOCKING=1 functions that
 * enqueue work also wait for it and return the result of orStreamSynchronize().
 *
 * In a kernel: a blocking call on the kernel's own stream runs as a part of the
 * kernel. After the kernel has enqueued work there, such a call would run too
 * early and returns NotPermitted. A kernel may wait for another stream. If
 * kernels wait for each other, one of the waits returns NotPermitted.
 *
 * Threads: the library's threads block all external signals. A thread that
 * waits in a call is cancelled (pthread_cancel) after the call. Cancelling a
 * thread while it runs a kernel of orLaunchKernelBlocking() ends the process.
 *
 * A struct that begins with `structSize` may get members at its end in a later
 * version. The caller sets structSize to the size of the struct that it was
 * compiled with, as the OPENREG_..._INIT macros do, and the library reads or
 * writes only that many bytes. A size below the first version's or above the
 * library's own returns orErrorInvalidValue.
 *
 * The header is for C11, C++11 and later. */
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

#if defined(__cplusplus) && __cplusplus >= 201703L
#define OPENREG_NODISCARD [[nodiscard]]
#else
#define OPENREG_NODISCARD __attribute__((warn_unused_result))
#endif
#if defined(__cplusplus)
#define OPENREG_NOEXCEPT noexcept
extern "C" {
#else
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
  orErrorInitialization = 10,
  orErrorIllegalAddress = 11,
  orErrorDeviceLost = 12,
  orErrorTimeout = 13,
  orErrorPeerAccessAlreadyEnabled = 14,
  orErrorPeerAccessNotEnabled = 15,
  orErrorHostMemoryAlreadyRegistered = 16,
  orErrorHostMemoryNotRegistered = 17,
  orErrorStreamCaptureUnsupported = 18,
  orErrorStreamCaptureInvalidated = 19,
  orErrorStreamCaptureMerge = 20,
  orErrorStreamCaptureUnmatched = 21,
  orErrorStreamCaptureUnjoined = 22,
  orErrorStreamCaptureIsolation = 23,
  orErrorCapturedEvent = 24,
  orErrorStreamCaptureWrongThread = 25,
  orErrorAssert = 26
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

/* The attributes of a pointer: its kind, its device (-1 for unmanaged memory),
 * and the start and size in bytes of the block around it. */
typedef struct orPointerAttributes {
  size_t structSize;
  orMemoryType type;
  int device;
  void* pointer;
  size_t size;
} orPointerAttributes;
#define OPENREG_POINTER_ATTRIBUTES_INIT \
  {sizeof(orPointerAttributes), orMemoryTypeUnmanaged, 0, NULL, 0}

typedef struct orDeviceProp {
  size_t structSize;
  char name[64];
  size_t totalGlobalMem; /* bytes */
  int multiProcessorCount;
  int major;
  int minor;
} orDeviceProp;
#define OPENREG_DEVICE_PROP_INIT {sizeof(orDeviceProp), {0}, 0, 0, 0, 0}

/* The attributes of orDeviceGetAttribute(). Yes is 1, no is 0. */
typedef enum orDeviceAttr {
  orDevAttrMultiProcessorCount = 0,
  orDevAttrComputeCapabilityMajor = 1,
  orDevAttrComputeCapabilityMinor = 2,
  orDevAttrMemoryAlignment = 3,   /* bytes, of every block */
  orDevAttrConcurrentKernels = 4, /* streams run at the same time */
  orDevAttrStreamPrioritiesSupported = 5,
  orDevAttrUnifiedAddressing = 6,     /* a pointer names its device */
  orDevAttrPageableMemoryAccess = 7,  /* copies wait for it */
  orDevAttrHostRegisterSupported = 8, /* orHostRegister */
  orDevAttrIpcSupported = 9,          /* orIpc... */
  orDevAttrKernelPointers = 10,       /* kernels of this process reach memory */
  orDevAttrResetCount = 11            /* how often the device was reset */
} orDeviceAttr;

/* The limits of orDeviceSetLimit() for the current device. */
typedef enum orLimit {
  /* Bytes of memory, at most OPENREG_DEVICE_MEMORY, which is the default. */
  orLimitMemory = 0,
  /* Milliseconds that a call may wait for work; 0 disables the limit. The
   * default is OPENREG_WAIT_TIMEOUT. If a call cannot abandon its work, a
   * device in a separate process is lost once it has not answered for this
   * time, and for at least ten seconds. */
  orLimitWaitTimeout = 1
} orLimit;

/* A setting: its value and the source of the value ("default" or
 * "environment"). */
typedef struct orSetting {
  size_t structSize;
  const char* name;
  const char* value;
  const char* source;
  const char* description;
  uint64_t number;          /* of a switch or a number, else 0 */
  const char* const* names; /* of a list of names, else null */
  size_t nameCount;
} orSetting;
#define OPENREG_SETTING_INIT \
  {sizeof(orSetting), NULL, NULL, NULL, NULL, 0, NULL, 0}

/* The type of a setting's value. */
typedef enum orSettingKind {
  orSettingSwitch = 0, /* 0 or 1 */
  orSettingNumber = 1  /* a whole number */
} orSettingKind;

/* The resources that this process holds now. */
typedef struct orResourceUsage {
  size_t structSize;
  size_t deviceBlocks;      /* orMalloc, orMallocAsync */
  size_t deviceBytes;       /* as requested */
  size_t hostBlocks;        /* orMallocHost */
  size_t hostBytes;         /* as requested */
  size_t hostRegistrations; /* orHostRegister */
  size_t unprotectedBlocks; /* orMemoryUnprotect */
  size_t ipcMappings;       /* orIpcOpenMemHandle */
  size_t streams;           /* without default and per-thread streams */
  size_t events;
  size_t failures; /* orFailureInject, OPENREG_FAILURES */
  size_t threads;  /* workers of all streams */
  size_t graphs;
} orResourceUsage;
#define OPENREG_RESOURCE_USAGE_INIT \
  {sizeof(orResourceUsage), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Opaque handles. A null stream is the default stream of the current device. */
typedef struct orStream* orStream_t;
typedef struct orEvent* orEvent_t;
typedef struct orFailure* orFailure_t;
typedef struct orMemPool* orMemPool_t;
typedef struct orGraph* orGraph_t;

/* The current device's stream of the calling thread. It is created at first use
 * and ends with the thread; its work still runs. In a kernel it is the stream
 * of the thread that runs the kernel: a worker or a waiting thread. */
#define orStreamPerThread ((orStream_t)0x2)

/* The properties of a pool for orMemPoolCreate(). */
typedef struct orMemPoolProps {
  size_t structSize;
  int device;
  size_t maxSize; /* bytes that it may reserve; 0: all device memory */
} orMemPoolProps;
#define OPENREG_MEM_POOL_PROPS_INIT {sizeof(orMemPoolProps), 0, 0}

/* Attributes of a pool, all uint64_t and in bytes. Blocks count as multiples of
 * 512. */
typedef enum orMemPoolAttr {
  /* The bytes that the pool keeps when the device or one of its streams is
   * synchronized; initially 0. */
  orMemPoolAttrReleaseThreshold = 0,
  orMemPoolAttrReservedMemCurrent = 1, /* reserved device memory */
  orMemPoolAttrReservedMemHigh = 2,    /* the most so far; 0 resets it */
  orMemPoolAttrUsedMemCurrent = 3,     /* used by blocks */
  orMemPoolAttrUsedMemHigh = 4         /* the most so far; 0 resets it */
} orMemPoolAttr;

/* Flags of streams. No stream waits for the default stream, so both mean the
 * same. */
#define orStreamDefault 0x0u
#define orStreamNonBlocking 0x1u

/* Flags of events. orEventInterprocess needs orEventDisableTiming. */
#define orEventDefault 0x0u
#define orEventDisableTiming 0x2u
#define orEventInterprocess 0x4u
#define orEventEnableTiming 0x8u
typedef unsigned int orEventFlags; /* one or several of these */

/* The threads whose waits for a whole device (orDeviceSynchronize, orFree,
 * orMemcpy, ...) a capture on that device refuses. Calls on the captured
 * streams are always refused. */
typedef enum orStreamCaptureMode {
  orStreamCaptureModeGlobal = 0,      /* from all threads */
  orStreamCaptureModeThreadLocal = 1, /* from the thread that captures */
  orStreamCaptureModeRelaxed = 2      /* none; any thread may end it */
} orStreamCaptureMode;

/* Whether a stream is captured. */
typedef enum orStreamCaptureStatus {
  orStreamCaptureStatusNone = 0,
  orStreamCaptureStatusActive = 1,
  orStreamCaptureStatusInvalidated = 2 /* it failed and must be ended */
} orStreamCaptureStatus;

#define orHostRegisterDefault 0x0u
#define orIpcMemLazyEnablePeerAccess 0x1u

/* Bytes that another process on this machine can open. */
#define OPENREG_IPC_HANDLE_SIZE 64
typedef struct orIpcMemHandle_t {
  unsigned char reserved[OPENREG_IPC_HANDLE_SIZE];
} orIpcMemHandle_t;
typedef struct orIpcEventHandle_t {
  unsigned char reserved[OPENREG_IPC_HANDLE_SIZE];
} orIpcEventHandle_t;

/* The calls that an injected failure counts and can hit. */
typedef enum orFailureSite {
  orFailureMalloc = 0,     /* orMalloc, orMallocAsync, orMallocFromPoolAsync */
  orFailureMallocHost = 1, /* orMallocHost; it has no device */
  orFailureLaunch = 2,     /* orLaunchKernel..., orLaunchMessage... */
  orFailureCopy = 3        /* orMemcpy..., orMemset... */
} orFailureSite;

/* A failure: which calls it hits, and what it does to them. */
typedef struct orFailureSpec {
  size_t structSize;
  orFailureSite site;
  int device; /* only calls for this device; -1 for all */
  /* The error of the call, or of its work when it should run, as if a kernel
   * had failed. orSuccess only delays. Accepted: orErrorMemoryAllocation for
   * allocations; orErrorLaunchFailure and orErrorIllegalAddress for launches
   * and copies; orErrorDeviceLost for all that have a device. */
  orError_t error;
  uint64_t delay; /* microseconds before the allocation, or before the work */
  uint64_t first; /* the first call that is hit, counted from 1 */
  /* 0: only that call; n: also each nth call after it. Must be 0 if
   * `probability` is not 0. */
  uint64_t period;
  /* The probability from 0 to 1 with which each call from `first` on is hit.
   * With 0, `period` decides. The same seed hits the same calls. */
  double probability;
  uint64_t seed;
} orFailureSpec;
/* The first allocation on any device; `error` is still to be set. */
#define OPENREG_FAILURE_SPEC_INIT \
  {sizeof(orFailureSpec), orFailureMalloc, -1, orSuccess, 0, 1, 0, 0.0, 0}

/* Receives the reply to a message. The reply is valid until the function
 * returns. */
typedef void (*orReply_t)(void* args, const void* reply, size_t size);
/* Runs a message on the device and calls `reply(args, ...)` once. An exception
 * fails the message. Returns 0, or 1 if the reply describes a failure: then the
 * device drops messages that were sent before the host received the reply. */
typedef int (*orExecute_t)(
    const void* message,
    size_t size,
    orReply_t reply,
    void* args);
/* An executor's view of device memory: a kernel accesses a device pointer p
 * between `begin` and `end` at p + distance. Only its own device's memory,
 * which begins at `own`, is mapped. */
typedef struct orMemoryView {
  void* begin;
  void* end;
  void* own;
  size_t size; /* bytes from `own` on */
  ptrdiff_t distance;
} orMemoryView;
/* Called in a device process before its first message. Must call
 * orSetExecutor(). */
typedef void (*orStartExecutor_t)(const orMemoryView* view);

/* The executor of messages. With OPENREG_ISOLATION=process a device process
 * loads `libraries`, a list of file paths, in this order, and calls the
 * function `start`, an orStartExecutor_t, of the last one. */
typedef struct orExecutor {
  size_t structSize;
  orExecute_t execute;
  const char* const* libraries;
  size_t libraryCount;
  const char* start;
} orExecutor;
#define OPENREG_EXECUTOR_INIT {sizeof(orExecutor), NULL, NULL, 0, NULL}

/* A kernel receives its argument block; it reaches device memory through
 * orGetKernelPointer(). */
typedef void (*orKernel_t)(void* args);
typedef void (*orHostFn_t)(void* userData);

/* ---- errors ------------------------------------------------------------ */

/* Returns the last error of this thread and forgets it. */
OPENREG_API orError_t orGetLastError(void) OPENREG_NOEXCEPT;
/* Returns the last error of this thread. */
OPENREG_API orError_t orPeekAtLastError(void) OPENREG_NOEXCEPT;
/* The name of a code, "orErrorInvalidValue"; never null. */
OPENREG_EXPORT const char* orGetErrorName(orError_t error) OPENREG_NOEXCEPT;
/* The meaning of a code in one phrase; never null. */
OPENREG_EXPORT const char* orGetErrorString(orError_t error) OPENREG_NOEXCEPT;
/* The text of this thread's last failure: function, argument, value, device.
 * After a later NotReady, which is not a failure, the text of that. Valid until
 * this thread's next failing call; empty if there was none. */
OPENREG_EXPORT const char* orGetErrorMessage(void) OPENREG_NOEXCEPT;

/* ---- the library ------------------------------------------------------- */

/* 10000 * major + 100 * minor + patch. Errors: InvalidValue. */
OPENREG_API orError_t orRuntimeGetVersion(int* version) OPENREG_NOEXCEPT;
/* The number of settings that orGetSetting() lists. Errors: InvalidValue. */
OPENREG_API orError_t orGetSettingCount(int* count) OPENREG_NOEXCEPT;
/* The setting at `index`. Its texts stay valid. Errors: InvalidValue. */
OPENREG_API orError_t orGetSetting(int index, orSetting* setting)
    OPENREG_NOEXCEPT;
/* The setting of that name. Registered settings and OPENREG_DISABLE are
 * available even if another variable has an invalid value. Errors:
 * InvalidValue. */
OPENREG_API orError_t orGetSettingByName(const char* name, orSetting* setting)
    OPENREG_NOEXCEPT;
/* Adds an environment variable of a library above the runtime to the settings
 * and reads it. An invalid value does not fail this function: it fails the
 * functions that return settings. Registering a name again in the same way does
 * nothing. Errors: InvalidValue. */
OPENREG_API orError_t orRegisterSetting(
    const char* name,
    const char* initial, /* the value if the variable is not set */
    orSettingKind kind,
    const char* description) OPENREG_NOEXCEPT;
/* The resources that the process holds. A test without leaks ends with the same
 * numbers as it began. Does not initialize the devices. Errors:
 * InvalidValue. */
OPENREG_API orError_t orGetResourceUsage(orResourceUsage* usage)
    OPENREG_NOEXCEPT;
/* Reserves the address space now instead of at the first use of a device.
 * Errors: MemoryAllocation. */
OPENREG_API orError_t orInit(void) OPENREG_NOEXCEPT;
/* Writes 1 if the devices are in use in this process, else 0.
 * Errors: InvalidValue. */
OPENREG_API orError_t orIsInitialized(int* initialized) OPENREG_NOEXCEPT;
/* Writes 1 in a child that was forked after the parent began to use the
 * devices, else 0. The only function that works in such a child.
 * Errors: InvalidValue. */
OPENREG_API orError_t orIsInBadFork(int* badFork) OPENREG_NOEXCEPT;

/* ---- devices ----------------------------------------------------------- */

/* The number of devices (OPENREG_DEVICE_COUNT). Does not initialize them.
 * Errors: InvalidValue. */
OPENREG_API orError_t orGetDeviceCount(int* count) OPENREG_NOEXCEPT;
/* The current device of this thread. Errors: InvalidValue. */
OPENREG_API orError_t orGetDevice(int* device) OPENREG_NOEXCEPT;
/* Makes `device` current for this thread. Errors: InvalidDevice. */
OPENREG_API orError_t orSetDevice(int device) OPENREG_NOEXCEPT;
/* Errors: InvalidValue, InvalidDevice. */
OPENREG_API orError_t orGetDeviceProperties(orDeviceProp* prop, int device)
    OPENREG_NOEXCEPT;
/* Makes all devices report the name, the capability and the processors of
 * `prop`. Ignores its memory, which OPENREG_DEVICE_MEMORY sets. Does not
 * initialize the devices. Errors: InvalidValue. */
OPENREG_API orError_t orSetDeviceModel(const orDeviceProp* prop)
    OPENREG_NOEXCEPT;
/* Errors: InvalidValue, InvalidDevice. */
OPENREG_API orError_t orDeviceGetAttribute(
    int* value,
    orDeviceAttr attr,
    int device) OPENREG_NOEXCEPT;
/* Waits for all work of the current device, including work that its kernels
 * launch during the wait. Returns and clears the failure that a kernel left on
 * one of its streams. Of the failures of destroyed streams, the first is kept.
 * Errors: LaunchFailure, NotPermitted, Timeout, [device]. */
OPENREG_API orError_t orDeviceSynchronize(void) OPENREG_NOEXCEPT;
/* Waits for running commands of the current device, drops queued ones, and
 * restores the device's initial state: its blocks, pools, IPC mappings and
 * streams end, its default stream is empty, and its failure, limits and peer
 * access are reset. Events and pinned memory stay. Errors: NotPermitted,
 * Timeout (the device is lost until a reset succeeds). */
OPENREG_API orError_t orDeviceReset(void) OPENREG_NOEXCEPT;
/* Limits the current device. A memory limit below what is in use fails
 * allocations until enough is freed. Errors: InvalidValue. */
OPENREG_API orError_t orDeviceSetLimit(orLimit limit, size_t value)
    OPENREG_NOEXCEPT;
/* Errors: InvalidValue. */
OPENREG_API orError_t orDeviceGetLimit(size_t* value, orLimit limit)
    OPENREG_NOEXCEPT;
/* Writes 1 if kernels of `device` can get access to the memory of `peerDevice`,
 * else 0, also if both are the same device. Errors: InvalidValue,
 * InvalidDevice. */
OPENREG_API orError_t orDeviceCanAccessPeer(
    int* canAccess,
    int device,
    int peerDevice) OPENREG_NOEXCEPT;
/* Allows kernels of the current device to access the memory of `peerDevice`,
 * not the reverse, until orDeviceDisablePeerAccess() or a reset of either.
 * `flags` must be 0. Copies between devices never need it.
 * Errors: InvalidValue, InvalidDevice (also: the current device),
 * PeerAccessAlreadyEnabled, NotSupported (OPENREG_PEER_ACCESS=0), [device]. */
OPENREG_API orError_t
orDeviceEnablePeerAccess(int peerDevice, unsigned int flags) OPENREG_NOEXCEPT;
/* Ends peer access; kernel pointers that kernels already have stay valid.
 * Errors: InvalidDevice, PeerAccessNotEnabled. */
OPENREG_API orError_t orDeviceDisablePeerAccess(int peerDevice)
    OPENREG_NOEXCEPT;

/* ---- memory ------------------------------------------------------------ */

/* Allocates `size` bytes on the current device, aligned to 512; size 0 gives a
 * null pointer. Errors: InvalidValue, MemoryAllocation, [device]. */
OPENREG_API orError_t orMalloc(void** devPtr, size_t size) OPENREG_NOEXCEPT;
/* Frees a block after all work of its device, which it waits for like
 * orDeviceSynchronize(), but without clearing failures. Null is allowed, and so
 * is a failed device. A block of a pool returns to the pool. Errors:
 * InvalidValue, NotPermitted, Timeout. */
OPENREG_API orError_t orFree(void* devPtr) OPENREG_NOEXCEPT;
/* As orFree or orFreeHost, but without waiting, for a block that no enqueued
 * work uses. The caller guarantees that. A kernel may call it, too.
 * Errors: InvalidValue. */
OPENREG_API orError_t orFreeUnused(void* ptr) OPENREG_NOEXCEPT;
/* Allocates pinned host memory, which copies can use asynchronously, aligned to
 * 64, or to a page if it is at least one; size 0 gives a null pointer.
 * Errors: InvalidValue, MemoryAllocation. */
OPENREG_API orError_t orMallocHost(void** hostPtr, size_t size)
    OPENREG_NOEXCEPT;
/* Frees pinned memory after all work of all devices; null is allowed.
 * Errors: InvalidValue, NotPermitted, Timeout. */
OPENREG_API orError_t orFreeHost(void* hostPtr) OPENREG_NOEXCEPT;
/* Pins `size` bytes of mapped host memory. `flags` must be 0.
 * Errors: InvalidValue (also: not mapped, or device memory),
 * HostMemoryAlreadyRegistered (also: some bytes, or of orMallocHost). */
OPENREG_API orError_t orHostRegister(void* ptr, size_t size, unsigned int flags)
    OPENREG_NOEXCEPT;
/* Unpins the registration that starts at `ptr`, after all work of all devices.
 * The memory must not be freed before.
 * Errors: InvalidValue (also: inside of a registration),
 * HostMemoryNotRegistered (also: a block of orMallocHost), NotPermitted,
 * Timeout. */
OPENREG_API orError_t orHostUnregister(void* ptr) OPENREG_NOEXCEPT;
/* Free and total bytes of the current device; orLimitMemory is the total.
 * Memory that pools reserve is not free, and neither are freed blocks that
 * other processes have open.
 * Errors: InvalidValue, [device]. */
OPENREG_API orError_t orMemGetInfo(size_t* free, size_t* total)
    OPENREG_NOEXCEPT;
/* Allocates `size` bytes, aligned to 512, from the current pool of the device
 * of `stream`, for work that is enqueued in the stream afterwards; size 0 gives
 * a null pointer. Memory freed on the same stream is reused immediately, memory
 * freed on another stream after that stream has reached the free. Waits for
 * frees of the pool only if there is no other memory. Errors: InvalidValue,
 * InvalidHandle, MemoryAllocation, [device]. */
OPENREG_API orError_t
orMallocAsync(void** devPtr, size_t size, orStream_t stream) OPENREG_NOEXCEPT;
/* As orMallocAsync from `pool`, which may belong to another device.
 * Errors: InvalidValue, InvalidHandle, MemoryAllocation, [device]. */
OPENREG_API orError_t orMallocFromPoolAsync(
    void** devPtr,
    size_t size,
    orMemPool_t pool,
    orStream_t stream) OPENREG_NOEXCEPT;
/* Frees a block for all later calls; work that was enqueued in `stream` before
 * can still use it. After that work a block of a pool returns to the pool, and
 * a block of orMalloc to the device. Null is allowed, and so is a failed
 * device. Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orFreeAsync(void* devPtr, orStream_t stream)
    OPENREG_NOEXCEPT;
/* Creates a pool. Errors: InvalidValue, InvalidDevice, [device]. */
OPENREG_API orError_t orMemPoolCreate(
    orMemPool_t* pool,
    const orMemPoolProps* props) OPENREG_NOEXCEPT;
/* Ends the handle immediately; blocks of the pool stay until they are freed. If
 * the pool is current, the default pool becomes current.
 * Errors: InvalidValue (the default pool of a device), InvalidHandle. */
OPENREG_API orError_t orMemPoolDestroy(orMemPool_t pool) OPENREG_NOEXCEPT;
/* The pool that a device has from the start.
 * Errors: InvalidValue, InvalidDevice. */
OPENREG_API orError_t orDeviceGetDefaultMemPool(orMemPool_t* pool, int device)
    OPENREG_NOEXCEPT;
/* The current pool of a device. Errors: InvalidValue, InvalidDevice. */
OPENREG_API orError_t orDeviceGetMemPool(orMemPool_t* pool, int device)
    OPENREG_NOEXCEPT;
/* Makes a pool of `device` its current one.
 * Errors: InvalidValue, InvalidDevice, InvalidHandle. */
OPENREG_API orError_t orDeviceSetMemPool(int device, orMemPool_t pool)
    OPENREG_NOEXCEPT;
/* Returns freed blocks to the device, as far as their frees were reached, until
 * the pool reserves at most `minBytesToKeep` bytes. Errors: InvalidHandle. */
OPENREG_API orError_t orMemPoolTrimTo(orMemPool_t pool, size_t minBytesToKeep)
    OPENREG_NOEXCEPT;
/* Writes a uint64_t. Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orMemPoolGetAttribute(
    orMemPool_t pool,
    orMemPoolAttr attr,
    void* value) OPENREG_NOEXCEPT;
/* Reads a uint64_t; the threshold can be set, and the high watermarks to 0.
 * Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orMemPoolSetAttribute(
    orMemPool_t pool,
    orMemPoolAttr attr,
    void* value) OPENREG_NOEXCEPT;
/* Describes any pointer, also one inside a block. An unknown pointer is
 * orMemoryTypeUnmanaged, not an error.
 * Errors: InvalidValue. */
OPENREG_API orError_t orPointerGetAttributes(
    orPointerAttributes* attributes,
    const void* ptr) OPENREG_NOEXCEPT;
/* Opens the pages of the block around `devPtr` to the host, for debugging, also
 * on a failed device.
 * Errors: InvalidValue. */
OPENREG_API orError_t orMemoryUnprotect(void* devPtr) OPENREG_NOEXCEPT;
/* Closes the pages again. Errors: InvalidValue. */
OPENREG_API orError_t orMemoryProtect(void* devPtr) OPENREG_NOEXCEPT;
/* The address at which kernels access the data of a device pointer: the same
 * memory at a fixed distance, which is the same for all devices of the process.
 * In a kernel, the memory of another device needs orDeviceEnablePeerAccess().
 * Works on a failed device.
 * Errors: InvalidValue, PeerAccessNotEnabled. */
OPENREG_API orError_t orGetKernelPointer(void** kernelPtr, const void* devPtr)
    OPENREG_NOEXCEPT;
/* The address range [*begin, *end) of all device pointers of this process, and
 * the distance in bytes from a device pointer to its kernel pointer.
 * Errors: InvalidValue. */
OPENREG_API orError_t orGetAddressRange(
    void** begin,
    void** end,
    ptrdiff_t* kernelDistance) OPENREG_NOEXCEPT;

/* ---- copies ------------------------------------------------------------ */

/* Ranges are checked: a copy that leaves its block returns orErrorInvalidValue.
 * They may overlap as in memmove, except in 2D copies. Count 0 does nothing. If
 * a block is freed while an asynchronous call is queued, the device fails with
 * orErrorIllegalAddress. */

/* Copies after all work of the default streams of the devices of source and
 * destination, or of the current device if both are the host, and waits. An
 * injected failure can fail it like a kernel.
 * Errors: InvalidValue, LaunchFailure, Timeout, [device]. */
OPENREG_API orError_t
orMemcpy(void* dst, const void* src, size_t count, orMemcpyKind kind)
    OPENREG_NOEXCEPT;
/* As orMemcpy in the order of `stream`, without waiting unless the host memory
 * is not pinned. Errors: InvalidValue, InvalidHandle, LaunchFailure, Timeout,
 * [device]. */
OPENREG_API orError_t orMemcpyAsync(
    void* dst,
    const void* src,
    size_t count,
    orMemcpyKind kind,
    orStream_t stream) OPENREG_NOEXCEPT;
/* As orMemcpy for `height` rows of `width` bytes, which begin every `dpitch`
 * and `spitch` bytes, at least `width`. Bytes between rows stay unchanged.
 * Width or height 0 does nothing. Errors: InvalidValue, LaunchFailure, Timeout,
 * [device]. */
OPENREG_API orError_t orMemcpy2D(
    void* dst,
    size_t dpitch,
    const void* src,
    size_t spitch,
    size_t width,
    size_t height,
    orMemcpyKind kind) OPENREG_NOEXCEPT;
/* As orMemcpy2D in the order of `stream`, without waiting unless the host
 * memory is not pinned. Errors: InvalidValue, InvalidHandle, LaunchFailure,
 * Timeout, [device]. */
OPENREG_API orError_t orMemcpy2DAsync(
    void* dst,
    size_t dpitch,
    const void* src,
    size_t spitch,
    size_t width,
    size_t height,
    orMemcpyKind kind,
    orStream_t stream) OPENREG_NOEXCEPT;
/* As orMemcpy between two devices, or within one.
 * Errors: InvalidValue, InvalidDevice, LaunchFailure, Timeout, [device]. */
OPENREG_API orError_t orMemcpyPeer(
    void* dst,
    int dstDevice,
    const void* src,
    int srcDevice,
    size_t count) OPENREG_NOEXCEPT;
/* As orMemcpyPeer in the order of `stream`, without waiting.
 * Errors: InvalidValue, InvalidDevice, InvalidHandle, [device]. */
OPENREG_API orError_t orMemcpyPeerAsync(
    void* dst,
    int dstDevice,
    const void* src,
    int srcDevice,
    size_t count,
    orStream_t stream) OPENREG_NOEXCEPT;
/* Sets `count` bytes of device memory, or of pinned memory, to the low byte of
 * `value` and waits, as orMemcpy does.
 * Errors: InvalidValue, LaunchFailure, Timeout, [device]. */
OPENREG_API orError_t orMemset(void* devPtr, int value, size_t count)
    OPENREG_NOEXCEPT;
/* As orMemset in the order of `stream`, without waiting.
 * Errors: InvalidValue, InvalidHandle, [device]. */
OPENREG_API orError_t
orMemsetAsync(void* devPtr, int value, size_t count, orStream_t stream)
    OPENREG_NOEXCEPT;

/* ---- streams ----------------------------------------------------------- */

/* Creates a stream of the current device. Errors: InvalidValue, [device]. */
OPENREG_API orError_t orStreamCreate(orStream_t* stream) OPENREG_NOEXCEPT;
/* `flags`: orStreamDefault or orStreamNonBlocking. A priority outside the range
 * is clamped into it. Errors: InvalidValue, [device]. */
OPENREG_API orError_t orStreamCreateWithPriority(
    orStream_t* stream,
    unsigned int flags,
    int priority) OPENREG_NOEXCEPT;
/* Ends the handle immediately; enqueued work still runs, and
 * orDeviceSynchronize() returns a failure. The default stream of a device and
 * orStreamPerThread cannot be destroyed.
 * Errors: InvalidHandle. */
OPENREG_API orError_t orStreamDestroy(orStream_t stream) OPENREG_NOEXCEPT;
/* An explicit handle of a device's default stream.
 * Errors: InvalidValue, InvalidDevice. */
OPENREG_API orError_t orStreamGetDefault(orStream_t* stream, int device)
    OPENREG_NOEXCEPT;
/* orSuccess when all work is done, orErrorNotReady while some is queued or
 * running, or the failure that a kernel of the stream left, without clearing
 * it.
 * Errors: NotReady, InvalidHandle, LaunchFailure, [device]. */
OPENREG_API orError_t orStreamQuery(orStream_t stream) OPENREG_NOEXCEPT;
/* The numbers of commands enqueued in the stream so far and of completed ones;
 * a kernel of the stream counts as enqueued and not completed. Once a later
 * call writes a `completed` of at least an earlier `enqueued`, all work
 * enqueued before the earlier call has run, and events recorded before it are
 * reached. Never waits, also on a failed device.
 * Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orStreamGetProgress(
    orStream_t stream,
    uint64_t* enqueued,
    uint64_t* completed) OPENREG_NOEXCEPT;
/* The address of a counter of the commands that a device's streams receive. It
 * can be read, atomically, until the process ends. A stream without work stays
 * without work while the count is unchanged, so that frequent callers need not
 * call orStreamGetProgress(). Errors: InvalidValue, InvalidDevice. */
OPENREG_API orError_t orDeviceGetEnqueueCounter(
    const uint64_t** counter,
    int device) OPENREG_NOEXCEPT;
/* Writes 1 if the calling thread runs a kernel of the stream, else 0. In such a
 * kernel blocking launches run immediately, and enqueued work runs after the
 * kernel.
 * Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orStreamRunsHere(orStream_t stream, int* here)
    OPENREG_NOEXCEPT;
/* Waits for all work enqueued so far, including work that its kernels enqueue
 * on the stream during the wait. Returns and clears the failure that a kernel
 * left, or that came with an event that the stream waited for.
 * Errors: InvalidHandle, LaunchFailure, NotPermitted, Timeout, [device].
 */
OPENREG_API orError_t orStreamSynchronize(orStream_t stream) OPENREG_NOEXCEPT;
/* Later work of `stream` waits for the last record of `event`; an event that
 * was never recorded holds nothing. If the work before the record failed, the
 * stream fails with the same error. `flags` must be 0.
 * Errors: InvalidValue, InvalidHandle, StreamCaptureUnsupported, [device]. */
OPENREG_API orError_t orStreamWaitEvent(
    orStream_t stream,
    orEvent_t event,
    unsigned int flags) OPENREG_NOEXCEPT;
/* Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orStreamGetPriority(orStream_t stream, int* priority)
    OPENREG_NOEXCEPT;
/* Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orStreamGetDevice(orStream_t stream, int* device)
    OPENREG_NOEXCEPT;
/* A greater priority is a smaller number, as in CUDA. Errors: InvalidValue. */
OPENREG_API orError_t orDeviceGetStreamPriorityRange(
    int* leastPriority,
    int* greatestPriority) OPENREG_NOEXCEPT;
/* Chooses the order in which streams run their work: "eager", "lazy" or
 * "random:SEED", as OPENREG_SCHEDULE does. All streams must be idle. A random
 * schedule starts with its seed and, if it is set, the environment variable
 * RANK. Errors: InvalidValue, NotPermitted. */
OPENREG_API orError_t orSetSchedule(const char* schedule) OPENREG_NOEXCEPT;
/* The present schedule. The text stays valid. Errors: InvalidValue. */
OPENREG_API orError_t orGetSchedule(const char** schedule) OPENREG_NOEXCEPT;
/* The address of a number that is 0 while the schedule is eager. It can be
 * read, atomically, until the process ends: a library that may run work on the
 * calling thread must enqueue it under the other schedules.
 * Errors: InvalidValue. */
OPENREG_API orError_t orGetScheduleFlag(const int** flag) OPENREG_NOEXCEPT;
/* Enqueues `kernel(args)`, which runs on any thread, with the stream's device
 * as the current device and with a separate last error. A stream holds 16384
 * commands; a call that would add work to a full stream waits, unless a kernel
 * makes it. When the kernel has run, or was dropped because the device or
 * earlier work of the stream failed, `cleanup(args)` is called if it is not
 * null; neither may wait for the stream, nor end its thread. For a kernel that
 * failed or was dropped, orGetLastError() in the cleanup returns the error. If
 * one of them throws, the stream has the error orErrorLaunchFailure and drops
 * its later work until a call that waits for it has returned the error. If the
 * launch itself fails, `args` stay with the caller. At exit neither is called.
 * Errors: InvalidValue, InvalidHandle, [device]. */
OPENREG_API orError_t orLaunchKernel(
    orStream_t stream,
    orKernel_t kernel,
    void* args,
    orKernel_t cleanup) OPENREG_NOEXCEPT;
/* Runs `kernel(args)` in stream order and returns when it has run, on the
 * calling thread. If the kernel throws, the call returns orErrorLaunchFailure.
 * If earlier work of the stream failed, the kernel does not run: the call
 * returns and clears that failure.
 * Errors: InvalidValue, InvalidHandle, LaunchFailure, Timeout, [device]. */
OPENREG_API orError_t orLaunchKernelBlocking(
    orStream_t stream,
    orKernel_t kernel,
    void* args) OPENREG_NOEXCEPT;
/* Enqueues a host function. It runs like a kernel, but does not count as one
 * for injected failures. `cleanup(userData)`, if not null, is called when the
 * function has run or was dropped. If the call fails, `userData` stays with the
 * caller. Errors: InvalidValue, InvalidHandle, [device]. */
OPENREG_API orError_t orLaunchHostFunc(
    orStream_t stream,
    orHostFn_t fn,
    void* userData,
    orKernel_t cleanup) OPENREG_NOEXCEPT;

/* Sets the executor of messages, one per process. Setting the same executor
 * again does nothing. Errors: InvalidValue. */
OPENREG_API orError_t orSetExecutor(const orExecutor* executor)
    OPENREG_NOEXCEPT;
/* Enqueues a message like a kernel; the executor runs it in the process of the
 * device. `name` describes it and must stay valid until the process ends;
 * `data` must stay valid until `cleanup(args)`. Before that, `onReply(args,
 * ...)` receives the reply, of at most 256 MiB, on a thread of this process in
 * stream order. If it throws, the message fails.
 * Errors: InvalidValue, InvalidHandle, NotSupported, [device]. */
OPENREG_API orError_t orLaunchMessage(
    orStream_t stream,
    const char* name,
    const void* data,
    size_t size,
    orReply_t onReply,
    void* args,
    orKernel_t cleanup) OPENREG_NOEXCEPT;
/* Runs a message in stream order and returns after `onReply(args, ...)`, which
 * the calling thread calls. Errors: InvalidValue, InvalidHandle, NotSupported,
 * LaunchFailure, Timeout, [device]. */
OPENREG_API orError_t orLaunchMessageBlocking(
    orStream_t stream,
    const char* name,
    const void* data,
    size_t size,
    orReply_t onReply,
    void* args) OPENREG_NOEXCEPT;
/* Sets the program and the arguments that start the launcher of device
 * processes, unless OPENREG_DEVICE_LAUNCHER is set. Errors: InvalidValue. */
OPENREG_API orError_t orSetDeviceLauncher(
    const char* const* arguments,
    size_t count) OPENREG_NOEXCEPT;
/* For a launcher: turns this process into a device process with the memory of
 * `view`, whose `distance` is computed, and serves until `socket` closes.
 * `start` may be null. Errors: InvalidValue, MemoryAllocation. */
OPENREG_API orError_t orServeDevice(
    int socket,
    const orMemoryView* view,
    orStartExecutor_t start) OPENREG_NOEXCEPT;

/* ---- events ------------------------------------------------------------ */

/* Errors: InvalidValue. */
OPENREG_API orError_t orEventCreate(orEvent_t* event) OPENREG_NOEXCEPT;
/* Creates an event, which belongs to no device. An interprocess event needs a
 * file.
 * Errors: InvalidValue, MemoryAllocation (only for orEventInterprocess). */
OPENREG_API orError_t
orEventCreateWithFlags(orEvent_t* event, unsigned int flags) OPENREG_NOEXCEPT;
/* Marks the end of the work that `stream` has now; the last record counts.
 * Errors: InvalidHandle, MemoryAllocation (16384 records of an interprocess
 * event are pending), [device]. */
OPENREG_API orError_t orEventRecord(orEvent_t event, orStream_t stream)
    OPENREG_NOEXCEPT;
/* orSuccess when the last record was reached, or nothing was recorded;
 * orErrorNotReady otherwise. If the work before the record failed: the error of
 * that work, at each call. Errors: NotReady, InvalidHandle, LaunchFailure,
 * [device]. */
OPENREG_API orError_t orEventQuery(orEvent_t event) OPENREG_NOEXCEPT;
/* Waits until the last record is reached. If the work before the record failed:
 * the error of that work, at each call.
 * Errors: InvalidHandle, NotPermitted, LaunchFailure, Timeout, [device]. */
OPENREG_API orError_t orEventSynchronize(orEvent_t event) OPENREG_NOEXCEPT;
/* Milliseconds between two reached records of events with timing, on streams of
 * one device. If the work before one of them failed: the error of that work, at
 * each call.
 * Errors: InvalidValue, InvalidHandle, NotReady, LaunchFailure, [device]. */
OPENREG_API orError_t
orEventElapsedTime(float* ms, orEvent_t start, orEvent_t end) OPENREG_NOEXCEPT;
/* Ends the handle immediately; waits for the event continue.
 * Errors: InvalidHandle. */
OPENREG_API orError_t orEventDestroy(orEvent_t event) OPENREG_NOEXCEPT;

/* ---- graphs ------------------------------------------------------------ */

/* While a stream is captured, enqueued work does not run: it becomes a part of
 * a graph, which runs it at each launch. A kernel's `args` are in use until its
 * `cleanup`, which is called once the graph is destroyed and does not run. A
 * record only orders the graph. A stream that waits for it is captured, too,
 * and the first stream must wait for it before the end. A wait for other work
 * returns StreamCaptureIsolation, a wait for another capture
 * StreamCaptureMerge. StreamCaptureUnsupported is returned by calls that wait
 * for the stream or query it, by calls that run immediately
 * (orLaunchKernelBlocking, copies with memory that is not pinned), and by
 * stream-ordered allocation (orMallocAsync, orFreeAsync). Calls that wait for a
 * captured record or query it return CapturedEvent. Each of these errors
 * invalidates the capture, and later calls return StreamCaptureInvalidated.
 * Calls of kernels are not captured. */

/* Begins to capture a stream; work that it already has is not included. The
 * default stream of a device cannot be captured. Errors: InvalidValue (also: it
 * is captured already), InvalidHandle, StreamCaptureUnsupported (the default
 * stream), [device]. */
OPENREG_API orError_t orStreamBeginCapture(
    orStream_t stream,
    orStreamCaptureMode mode) OPENREG_NOEXCEPT;
/* Ends the capture that began on `stream`, in the same thread unless it is
 * relaxed, and writes its graph. On failure it writes null and ends the
 * capture, except for StreamCaptureUnmatched and StreamCaptureWrongThread.
 * Errors: InvalidValue (also: the stream is not captured), InvalidHandle,
 * StreamCaptureInvalidated, StreamCaptureUnmatched, StreamCaptureUnjoined,
 * StreamCaptureWrongThread. */
OPENREG_API orError_t orStreamEndCapture(orStream_t stream, orGraph_t* graph)
    OPENREG_NOEXCEPT;
/* Whether the stream is captured, and the unique number of the capture; 0 for
 * none. Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orStreamGetCaptureInfo(
    orStream_t stream,
    orStreamCaptureStatus* status,
    uint64_t* id) OPENREG_NOEXCEPT;
/* The number of commands in a graph: kernels, messages, copies, sets and host
 * functions. Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orGraphGetNodeCount(orGraph_t graph, size_t* count)
    OPENREG_NOEXCEPT;
/* Enqueues all commands of a graph, in the order of `stream`, and after the
 * last launch of the graph. Work captured on other streams runs in internal
 * streams. A failed command leaves its error as it would without a graph; the
 * others run. An injected failure counts the commands when they run. A full
 * stream may accept only a part, after which the next launch runs.
 * Errors: InvalidValue (the stream is of another device than the captured
 * one), InvalidHandle, NotSupported (the stream is captured),
 * [device]. */
OPENREG_API orError_t orGraphLaunch(orGraph_t graph, orStream_t stream)
    OPENREG_NOEXCEPT;
/* Writes the commands and their order to a file, in the language of Graphviz.
 * Errors: InvalidValue (also: the file cannot be written), InvalidHandle. */
OPENREG_API orError_t orGraphDebugDotPrint(orGraph_t graph, const char* path)
    OPENREG_NOEXCEPT;
/* Ends the handle immediately; enqueued launches still run. Then the cleanups
 * of the argument blocks are called, on any thread.
 * Errors: InvalidHandle. */
OPENREG_API orError_t orGraphDestroy(orGraph_t graph) OPENREG_NOEXCEPT;

/* ---- other processes --------------------------------------------------- */

/* Writes what another process on this machine, of the same user, needs to open
 * the block around `devPtr`: the same bytes each time.
 * Errors: InvalidValue (also: memory of a pool), MemoryAllocation, [device]. */
OPENREG_API orError_t orIpcGetMemHandle(orIpcMemHandle_t* handle, void* devPtr)
    OPENREG_NOEXCEPT;
/* Maps a block of another process and writes where it starts here, on the
 * device of the same number; a block that is open already is counted and keeps
 * its address. `flags`: 0 or orIpcMemLazyEnablePeerAccess. Events or waits must
 * order the work of both processes. If the other process frees the block,
 * resets the device or ends, the bytes stay until all have closed it, and count
 * as used there. Errors: InvalidValue (also: the block or its process is gone),
 * InvalidDevice, NotPermitted (this process made the handle), MemoryAllocation,
 * [device]. */
OPENREG_API orError_t orIpcOpenMemHandle(
    void** devPtr,
    orIpcMemHandle_t handle,
    unsigned int flags) OPENREG_NOEXCEPT;
/* Closes one opening; the last one after all work of the device.
 * Errors: InvalidValue, NotPermitted, Timeout. */
OPENREG_API orError_t orIpcCloseMemHandle(void* devPtr) OPENREG_NOEXCEPT;
/* Writes what another process needs to open an event that was made with
 * orEventInterprocess and orEventDisableTiming.
 * Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orIpcGetEventHandle(
    orIpcEventHandle_t* handle,
    orEvent_t event) OPENREG_NOEXCEPT;
/* Opens an event of another process: both may record it and wait for it. If the
 * process that recorded it ends before the record is reached, waits and queries
 * return orErrorUnknown. orEventDestroy closes it.
 * Errors: InvalidValue (also: the event or its process is gone), NotPermitted
 * (this process made the handle), MemoryAllocation. */
OPENREG_API orError_t orIpcOpenEventHandle(
    orEvent_t* event,
    orIpcEventHandle_t handle) OPENREG_NOEXCEPT;

/* ---- failures ---------------------------------------------------------- */

/* Injects a failure that counts calls from now on, in the order in which they
 * are made, and hits the calls that `spec` selects. Errors: InvalidValue,
 * InvalidDevice. */
OPENREG_API orError_t orFailureInject(
    orFailure_t* failure,
    const orFailureSpec* spec) OPENREG_NOEXCEPT;
/* The numbers of calls that the failure has counted and hit.
 * Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orFailureGetCounts(
    orFailure_t failure,
    uint64_t* calls,
    uint64_t* hits) OPENREG_NOEXCEPT;
/* Removes the failure; work that it has already hit still fails.
 * Errors: InvalidHandle. */
OPENREG_API orError_t orFailureRemove(orFailure_t failure) OPENREG_NOEXCEPT;
/* Loses a device as if it were unplugged: running commands end, queued commands
 * are dropped, and it fails with orErrorDeviceLost until orDeviceReset().
 * Errors: InvalidDevice. */
OPENREG_API orError_t orDeviceLose(int device) OPENREG_NOEXCEPT;
/* Fails a device like a failed assertion in a kernel: queued commands are
 * dropped, and it fails with orErrorAssert and `message` until orDeviceReset().
 * A kernel may call it, too. Errors: InvalidValue, InvalidDevice. */
OPENREG_API orError_t orDeviceAssertFail(int device, const char* message)
    OPENREG_NOEXCEPT;

#if defined(__cplusplus)
} /* extern "C" */

#if __cplusplus >= 201703L /* which the templates need */
#include <openreg/openreg.hpp>
#endif
#endif

#endif /* OPENREG_OPENREG_H */
