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
 * That is also so for the devices of pointers. What a reset by another thread
 * overtakes is DeviceLost. Once the process exits, waits end with Timeout after
 * 200 ms. With OPENREG_LAUNCH_BLOCKING=1 what enqueues work also waits for it,
 * and returns what orStreamSynchronize() would.
 *
 * In a kernel: a call on the stream of the kernel that does not enqueue is a
 * part of the kernel. After work that the kernel itself has enqueued there it
 * would come too early, and is NotPermitted. A kernel may wait for another
 * stream; of kernels that wait for each other, one is NotPermitted.
 *
 * Threads: those of the library block all signals from outside. A thread that
 * waits in a call is cancelled (pthread_cancel) after it; one that is cancelled
 * while it runs a kernel of orLaunchKernelBlocking() ends the process.
 *
 * A struct that begins with `structSize` may get members at its end in a later
 * version. The caller sets structSize to the size of the struct that it was
 * compiled with, which the OPENREG_..._INIT macros do, and the library reads or
 * writes only that many bytes. A size that is less than that of the first
 * version, or more than the library knows, is orErrorInvalidValue.
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

/* What is known of a pointer: its kind, the device that it belongs to (-1 for
 * unmanaged memory), and the start and size in bytes of the block around it. */
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

/* What orDeviceGetAttribute() knows. Yes is 1, no is 0. */
typedef enum orDeviceAttr {
  orDevAttrMultiProcessorCount = 0,
  orDevAttrComputeCapabilityMajor = 1,
  orDevAttrComputeCapabilityMinor = 2,
  orDevAttrMemoryAlignment = 3,   /* bytes, of every block */
  orDevAttrConcurrentKernels = 4, /* streams run at the same time */
  orDevAttrStreamPrioritiesSupported = 5,
  orDevAttrUnifiedAddressing = 6,     /* a pointer names its device */
  orDevAttrPageableMemoryAccess = 7,  /* copies wait for such memory */
  orDevAttrHostRegisterSupported = 8, /* orHostRegister */
  orDevAttrIpcSupported = 9,          /* orIpc... */
  orDevAttrKernelPointers = 10,       /* kernels of this process reach memory */
  orDevAttrResetCount = 11            /* how often the device was reset */
} orDeviceAttr;

/* What orDeviceSetLimit() limits on the current device. */
typedef enum orLimit {
  /* Bytes of memory, at most OPENREG_DEVICE_MEMORY, which is the default. */
  orLimitMemory = 0,
  /* Milliseconds that a call may wait for work; 0 is no limit. The default is
   * OPENREG_WAIT_TIMEOUT. A device in a process of its own that says nothing
   * for so long, and for ten seconds, to a call that cannot leave its work is
   * lost.
   */
  orLimitWaitTimeout = 1
} orLimit;

/* One setting of the environment: its value and where that came from
 * ("default" or "environment"). */
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

/* What the value of a setting may be. */
typedef enum orSettingKind {
  orSettingSwitch = 0, /* 0 or 1 */
  orSettingNumber = 1  /* a whole number */
} orSettingKind;

/* What this process holds now. */
typedef struct orResourceUsage {
  size_t structSize;
  size_t deviceBlocks;      /* orMalloc, orMallocAsync */
  size_t deviceBytes;       /* as requested */
  size_t hostBlocks;        /* orMallocHost */
  size_t hostBytes;         /* as requested */
  size_t hostRegistrations; /* orHostRegister */
  size_t unprotectedBlocks; /* orMemoryUnprotect */
  size_t ipcMappings;       /* orIpcOpenMemHandle */
  size_t streams;           /* without the default ones, and those of threads */
  size_t events;
  size_t failures; /* orFailureInject, and OPENREG_FAILURES */
  size_t threads;  /* workers of streams, also of default ones */
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

/* A stream of the current device that belongs to the calling thread. It begins
 * with its first use and ends with the thread, whose work still runs. In a
 * kernel it is that of the thread that runs the kernel: a worker, or one that
 * waits. */
#define orStreamPerThread ((orStream_t)0x2)

/* What orMemPoolCreate() makes. */
typedef struct orMemPoolProps {
  size_t structSize;
  int device;
  size_t maxSize; /* bytes that it may reserve; 0 is all of the device's */
} orMemPoolProps;
#define OPENREG_MEM_POOL_PROPS_INIT {sizeof(orMemPoolProps), 0, 0}

/* Numbers of a pool, all uint64_t and in bytes. Blocks count as multiples of
 * 512. */
typedef enum orMemPoolAttr {
  /* What the pool keeps when the device or a stream of it is synchronized; 0 at
   * first. */
  orMemPoolAttrReleaseThreshold = 0,
  orMemPoolAttrReservedMemCurrent = 1, /* what it has of the device */
  orMemPoolAttrReservedMemHigh = 2,    /* the most so far; 0 resets it */
  orMemPoolAttrUsedMemCurrent = 3,     /* of that: blocks not yet freed */
  orMemPoolAttrUsedMemHigh = 4         /* the most so far; 0 resets it */
} orMemPoolAttr;

/* Flags of streams; no stream waits for the default one, so both mean the
 * same. */
#define orStreamDefault 0x0u
#define orStreamNonBlocking 0x1u

/* Flags of events. orEventInterprocess needs orEventDisableTiming. */
#define orEventDefault 0x0u
#define orEventDisableTiming 0x2u
#define orEventInterprocess 0x4u
#define orEventEnableTiming 0x8u
typedef unsigned int orEventFlags; /* any of these, or several */

/* What a capture refuses besides calls on its own streams: calls that wait for
 * a device that it captures a stream of, without naming a stream
 * (orDeviceSynchronize, orFree, orMemcpy, ...). */
typedef enum orStreamCaptureMode {
  orStreamCaptureModeGlobal = 0,      /* from all threads */
  orStreamCaptureModeThreadLocal = 1, /* from the thread that captures */
  orStreamCaptureModeRelaxed = 2      /* none; any thread may end it */
} orStreamCaptureMode;

/* Whether a stream is captured. */
typedef enum orStreamCaptureStatus {
  orStreamCaptureStatusNone = 0,
  orStreamCaptureStatusActive = 1,
  orStreamCaptureStatusInvalidated = 2 /* it failed, and is to be ended */
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

/* The calls that an injected failure counts and hits. */
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
  /* What the call fails with, or the work when it should run, as if a kernel
   * had failed. orSuccess only delays. Accepted: orErrorMemoryAllocation for
   * allocations; orErrorLaunchFailure and orErrorIllegalAddress for launches
   * and copies; orErrorDeviceLost for all that have a device. */
  orError_t error;
  uint64_t delay; /* microseconds before the allocation, or before the work */
  uint64_t first; /* the first call that is hit, counted from 1 */
  /* 0: only that one; n: also each nth after it. Must be 0 if `probability` is
   * not 0. */
  uint64_t period;
  /* The probability from 0 to 1 with which each call from `first` on is hit; 0
   * is no probability: `period` decides. The same seed hits the same calls. */
  double probability;
  uint64_t seed;
} orFailureSpec;
/* The first allocation on any device; `error` is still to be set. */
#define OPENREG_FAILURE_SPEC_INIT \
  {sizeof(orFailureSpec), orFailureMalloc, -1, orSuccess, 0, 1, 0, 0.0, 0}

/* Takes the reply to a message, which is valid until it returns. */
typedef void (*orReply_t)(void* args, const void* reply, size_t size);
/* Runs a message on the device, and calls `reply(args, ...)` once. An exception
 * is the failure of the message. Returns 0, or 1 if the reply describes a
 * failure: then the device drops messages that were sent before the host knew.
 */
typedef int (*orExecute_t)(
    const void* message,
    size_t size,
    orReply_t reply,
    void* args);
/* Where an executor finds memory: a kernel reaches the bytes of the device
 * pointer p, from `begin` to `end`, at p + distance. Those of its own device
 * begin at `own`, and no others are there. */
typedef struct orMemoryView {
  void* begin;
  void* end;
  void* own;
  size_t size; /* bytes from `own` on */
  ptrdiff_t distance;
} orMemoryView;
/* Called in the process of a device before its first message: calls
 * orSetExecutor() there. */
typedef void (*orStartExecutor_t)(const orMemoryView* view);

/* What runs messages. With OPENREG_ISOLATION=process a device's process loads
 * `libraries`, paths of files, in this order, and calls the function `start`,
 * an orStartExecutor_t, of the last one. */
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
/* What a code means in one phrase; never null. */
OPENREG_EXPORT const char* orGetErrorString(orError_t error) OPENREG_NOEXCEPT;
/* The text of this thread's last failure: function, argument, value, device; or
 * of its last NotReady, if that came later, which is no failure. Valid until
 * this thread's next failing call; empty if there was none. */
OPENREG_EXPORT const char* orGetErrorMessage(void) OPENREG_NOEXCEPT;

/* ---- the library ------------------------------------------------------- */

/* 10000 * major + 100 * minor + patch. Errors: InvalidValue. */
OPENREG_API orError_t orRuntimeGetVersion(int* version) OPENREG_NOEXCEPT;
/* The number of settings that orGetSetting() knows. Errors: InvalidValue. */
OPENREG_API orError_t orGetSettingCount(int* count) OPENREG_NOEXCEPT;
/* The setting at `index`. Its texts stay valid. Errors: InvalidValue. */
OPENREG_API orError_t orGetSetting(int index, orSetting* setting)
    OPENREG_NOEXCEPT;
/* The setting of that name; one that was registered, and OPENREG_DISABLE, also
 * while another variable has a wrong value. Errors: InvalidValue. */
OPENREG_API orError_t orGetSettingByName(const char* name, orSetting* setting)
    OPENREG_NOEXCEPT;
/* Adds an environment variable of a library above this one to the settings, and
 * reads it. A wrong value fails no call of this function: it fails the
 * functions that return settings. To register a name again, in the same way,
 * does nothing. Errors: InvalidValue. */
OPENREG_API orError_t orRegisterSetting(
    const char* name,
    const char* initial, /* the value where the variable is not set */
    orSettingKind kind,
    const char* description) OPENREG_NOEXCEPT;
/* What the process holds: a test that leaves no leak ends where it began.
 * Starts nothing. Errors: InvalidValue. */
OPENREG_API orError_t orGetResourceUsage(orResourceUsage* usage)
    OPENREG_NOEXCEPT;
/* Reserves the address space now instead of at the first use of a device.
 * Errors: MemoryAllocation. */
OPENREG_API orError_t orInit(void) OPENREG_NOEXCEPT;
/* Writes 1 if the devices are in use in this process, else 0.
 * Errors: InvalidValue. */
OPENREG_API orError_t orIsInitialized(int* initialized) OPENREG_NOEXCEPT;
/* Writes 1 in a child that was forked after the parent began to use the
 * devices, else 0; the one function that answers there.
 * Errors: InvalidValue. */
OPENREG_API orError_t orIsInBadFork(int* badFork) OPENREG_NOEXCEPT;

/* ---- devices ----------------------------------------------------------- */

/* The number of devices (OPENREG_DEVICE_COUNT). Starts nothing.
 * Errors: InvalidValue. */
OPENREG_API orError_t orGetDeviceCount(int* count) OPENREG_NOEXCEPT;
/* The current device of this thread. Errors: InvalidValue. */
OPENREG_API orError_t orGetDevice(int* device) OPENREG_NOEXCEPT;
/* Makes `device` current for this thread. Errors: InvalidDevice. */
OPENREG_API orError_t orSetDevice(int device) OPENREG_NOEXCEPT;
/* Errors: InvalidValue, InvalidDevice. */
OPENREG_API orError_t orGetDeviceProperties(orDeviceProp* prop, int device)
    OPENREG_NOEXCEPT;
/* Errors: InvalidValue, InvalidDevice. */
OPENREG_API orError_t orDeviceGetAttribute(
    int* value,
    orDeviceAttr attr,
    int device) OPENREG_NOEXCEPT;
/* Waits for all work of the current device, also for what its kernels launch
 * meanwhile; returns, and forgets, the failure that a kernel of one of its
 * streams left. Of those of destroyed streams, the
 * first is kept.
 * Errors: LaunchFailure, NotPermitted, Timeout, [device]. */
OPENREG_API orError_t orDeviceSynchronize(void) OPENREG_NOEXCEPT;
/* Waits for what the current device runs, drops what it has queued, and makes
 * it as new: its blocks, pools, IPC mappings and streams end, its default
 * stream is empty, its failure, limits and peer access are as at the start.
 * Events and pinned memory stay. Errors: NotPermitted, Timeout (the device is
 * lost until a reset succeeds). */
OPENREG_API orError_t orDeviceReset(void) OPENREG_NOEXCEPT;
/* Limits the current device. A memory limit below what is in use fails
 * allocations until enough is freed. Errors: InvalidValue. */
OPENREG_API orError_t orDeviceSetLimit(orLimit limit, size_t value)
    OPENREG_NOEXCEPT;
/* Errors: InvalidValue. */
OPENREG_API orError_t orDeviceGetLimit(size_t* value, orLimit limit)
    OPENREG_NOEXCEPT;
/* Writes 1 if kernels of `device` can be given the memory of `peerDevice`, else
 * 0, as for a device and itself. Errors: InvalidValue, InvalidDevice. */
OPENREG_API orError_t orDeviceCanAccessPeer(
    int* canAccess,
    int device,
    int peerDevice) OPENREG_NOEXCEPT;
/* Lets kernels of the current device reach the memory of `peerDevice`, not the
 * reverse, until orDeviceDisablePeerAccess() or a reset of either. `flags` must
 * be 0. Copies between devices never need it.
 * Errors: InvalidValue, InvalidDevice (also: the current device),
 * PeerAccessAlreadyEnabled, NotSupported (OPENREG_PEER_ACCESS=0), [device]. */
OPENREG_API orError_t
orDeviceEnablePeerAccess(int peerDevice, unsigned int flags) OPENREG_NOEXCEPT;
/* Ends that; a kernel pointer that a kernel has got stays good.
 * Errors: InvalidDevice, PeerAccessNotEnabled. */
OPENREG_API orError_t orDeviceDisablePeerAccess(int peerDevice)
    OPENREG_NOEXCEPT;

/* ---- memory ------------------------------------------------------------ */

/* Allocates `size` bytes on the current device, aligned to 512; size 0 gives a
 * null pointer. Errors: InvalidValue, MemoryAllocation, [device]. */
OPENREG_API orError_t orMalloc(void** devPtr, size_t size) OPENREG_NOEXCEPT;
/* Frees a block after all work of its device, as orDeviceSynchronize() waits
 * for it, whose failures stay for the next wait; null is allowed, and so is a
 * failed device. One of a pool goes back to the pool. Errors: InvalidValue,
 * NotPermitted, Timeout. */
OPENREG_API orError_t orFree(void* devPtr) OPENREG_NOEXCEPT;
/* As orFree or orFreeHost for a block that no enqueued work uses, which the
 * caller knows: waits for nothing, so a kernel may call it too.
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
/* Makes `size` bytes of mapped host memory pinned. `flags` must be 0.
 * Errors: InvalidValue (also: not mapped, or memory of a device),
 * HostMemoryAlreadyRegistered (also: some bytes, or of orMallocHost). */
OPENREG_API orError_t orHostRegister(void* ptr, size_t size, unsigned int flags)
    OPENREG_NOEXCEPT;
/* Ends that, after all work of all devices; `ptr` is where it starts. The
 * memory must not be freed before.
 * Errors: InvalidValue (also: inside of a registration),
 * HostMemoryNotRegistered (also: a block of orMallocHost), NotPermitted,
 * Timeout. */
OPENREG_API orError_t orHostUnregister(void* ptr) OPENREG_NOEXCEPT;
/* Free and total bytes of the current device; orLimitMemory is the total. What
 * pools reserve is not free, nor are freed blocks that other processes have
 * open.
 * Errors: InvalidValue, [device]. */
OPENREG_API orError_t orMemGetInfo(size_t* free, size_t* total)
    OPENREG_NOEXCEPT;
/* Allocates `size` bytes, aligned to 512, from the current pool of the device
 * of `stream`, for what is enqueued in it from here on; size 0 gives a null
 * pointer. What was freed on the stream can be had again at once, what was
 * freed on another one when that has come to the free. Waits only if there is
 * no other memory: for frees of the pool. Errors: InvalidValue, InvalidHandle,
 * MemoryAllocation, [device]. */
OPENREG_API orError_t
orMallocAsync(void** devPtr, size_t size, orStream_t stream) OPENREG_NOEXCEPT;
/* The same from `pool`, which may be one of another device.
 * Errors: InvalidValue, InvalidHandle, MemoryAllocation, [device]. */
OPENREG_API orError_t orMallocFromPoolAsync(
    void** devPtr,
    size_t size,
    orMemPool_t pool,
    orStream_t stream) OPENREG_NOEXCEPT;
/* Ends a block for all later calls; work that was enqueued in `stream` before
 * still reaches it. A block of a pool goes back to it, one of orMalloc to the
 * device, after that work. Null is allowed, and so is a failed device. Errors:
 * InvalidValue, InvalidHandle. */
OPENREG_API orError_t orFreeAsync(void* devPtr, orStream_t stream)
    OPENREG_NOEXCEPT;
/* Makes a pool. Errors: InvalidValue, InvalidDevice, [device]. */
OPENREG_API orError_t orMemPoolCreate(
    orMemPool_t* pool,
    const orMemPoolProps* props) OPENREG_NOEXCEPT;
/* Ends the handle at once; blocks of the pool stay until they are freed. If the
 * pool is current, the default one is from here on.
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
/* Gives freed blocks whose turn has come back to the device, until the pool
 * reserves at most so many bytes. Errors: InvalidHandle. */
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
/* Describes any pointer, also one inside a block; a pointer that the runtime
 * does not know is orMemoryTypeUnmanaged, not an error.
 * Errors: InvalidValue. */
OPENREG_API orError_t orPointerGetAttributes(
    orPointerAttributes* attributes,
    const void* ptr) OPENREG_NOEXCEPT;
/* Opens the pages of the block around `devPtr` to the host, for debugging, also
 * on a failed device.
 * Errors: InvalidValue. */
OPENREG_API orError_t orMemoryUnprotect(void* devPtr) OPENREG_NOEXCEPT;
/* Closes them again. Errors: InvalidValue. */
OPENREG_API orError_t orMemoryProtect(void* devPtr) OPENREG_NOEXCEPT;
/* Where kernels find the data of a device pointer: the same memory at a fixed
 * distance, the same for all devices of the process. In a kernel, the memory of
 * another device needs orDeviceEnablePeerAccess(). It works on a failed device.
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

/* Ranges are checked: a copy that leaves its block is orErrorInvalidValue. They
 * may overlap, as in memmove, but for rows. Count 0 does nothing. A block that
 * is freed while an asynchronous call waits for its turn leaves
 * orErrorIllegalAddress on the device. */

/* Copies after all work of the default streams of the devices of source and
 * destination, or of the current device if both are the host, and waits. It can
 * fail as a kernel does where a failure is injected.
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
 * and `spitch` bytes, at least `width`. Bytes between rows are left alone.
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

/* Makes a stream of the current device. Errors: InvalidValue, [device]. */
OPENREG_API orError_t orStreamCreate(orStream_t* stream) OPENREG_NOEXCEPT;
/* `flags`: orStreamDefault or orStreamNonBlocking. A priority outside the range
 * is clamped into it. Errors: InvalidValue, [device]. */
OPENREG_API orError_t orStreamCreateWithPriority(
    orStream_t* stream,
    unsigned int flags,
    int priority) OPENREG_NOEXCEPT;
/* Ends the handle at once; work that was enqueued still runs, and a failure is
 * left for orDeviceSynchronize(). The default stream of a device and
 * orStreamPerThread cannot be destroyed.
 * Errors: InvalidHandle. */
OPENREG_API orError_t orStreamDestroy(orStream_t stream) OPENREG_NOEXCEPT;
/* The default stream of a device as a handle of its own.
 * Errors: InvalidValue, InvalidDevice. */
OPENREG_API orError_t orStreamGetDefault(orStream_t* stream, int device)
    OPENREG_NOEXCEPT;
/* orSuccess when all work is done, orErrorNotReady while some is queued or
 * running, or the failure that a kernel of the stream left, which stays.
 * Errors: NotReady, InvalidHandle, LaunchFailure, [device]. */
OPENREG_API orError_t orStreamQuery(orStream_t stream) OPENREG_NOEXCEPT;
/* How many commands were enqueued in the stream so far, and how many of them
 * are completed; a kernel of the stream sees itself as enqueued, and not
 * completed. What was enqueued before a call that wrote `enqueued` has run, and
 * events that were recorded before it are reached, once a later call writes at
 * least as much for `completed`. Waits for nothing, also on a failed device.
 * Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orStreamGetProgress(
    orStream_t stream,
    uint64_t* enqueued,
    uint64_t* completed) OPENREG_NOEXCEPT;
/* Where a device counts the commands that its streams are given; the counter
 * can be read, atomically, until the process ends. A stream that had no work at
 * some count has none while the count is the same, so who asks often need not
 * call orStreamGetProgress(). Errors: InvalidValue, InvalidDevice. */
OPENREG_API orError_t orDeviceGetEnqueueCounter(
    const uint64_t** counter,
    int device) OPENREG_NOEXCEPT;
/* Writes 1 if the calling thread runs a kernel of the stream, else 0. What such
 * a kernel launches blocking runs at once, and what it enqueues runs after it.
 * Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orStreamRunsHere(orStream_t stream, int* here)
    OPENREG_NOEXCEPT;
/* Waits for all work enqueued so far, also for what its kernels enqueue on the
 * stream meanwhile; returns, and forgets, the failure that a kernel of it left,
 * or that came with an event that the stream waited for.
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
/* Enqueues `kernel(args)`, which runs on any thread, with the device of the
 * stream as the current one and a last error of its own. A stream holds 16384
 * commands; a call that would add work to a full one waits, unless a kernel
 * makes it. When the kernel has run, or was dropped because the device or
 * earlier work of the stream failed, `cleanup(args)` is called if it is not
 * null; neither may wait for the stream, nor end its thread. For a kernel that
 * failed or was dropped, orGetLastError() in the cleanup returns the error. If
 * one throws, that leaves orErrorLaunchFailure on the stream, which drops its
 * later work until a call that waits for it has returned the error. If the
 * launch itself fails, `args` stay with the caller. At exit neither is called
 * any more. Errors: InvalidValue, InvalidHandle, [device]. */
OPENREG_API orError_t orLaunchKernel(
    orStream_t stream,
    orKernel_t kernel,
    void* args,
    orKernel_t cleanup) OPENREG_NOEXCEPT;
/* Runs `kernel(args)` in stream order and returns when it has run, on the
 * calling thread. A kernel that throws is orErrorLaunchFailure at once. If
 * earlier work of the stream failed, the kernel does not run: the call returns,
 * and forgets, that failure.
 * Errors: InvalidValue, InvalidHandle, LaunchFailure, Timeout, [device]. */
OPENREG_API orError_t orLaunchKernelBlocking(
    orStream_t stream,
    orKernel_t kernel,
    void* args) OPENREG_NOEXCEPT;
/* Enqueues a function of the host: as a kernel, but not one of the device, so
 * that no failure is injected. `cleanup(userData)`, if not null, is called when
 * the function has run or was dropped. If the call fails, `userData` stays with
 * the caller. Errors: InvalidValue, InvalidHandle, [device]. */
OPENREG_API orError_t orLaunchHostFunc(
    orStream_t stream,
    orHostFn_t fn,
    void* userData,
    orKernel_t cleanup) OPENREG_NOEXCEPT;

/* Brings the executor of messages, one for the process. To bring the same again
 * does nothing. Errors: InvalidValue. */
OPENREG_API orError_t orSetExecutor(const orExecutor* executor)
    OPENREG_NOEXCEPT;
/* Enqueues a message for the device's executor: as a kernel, but what runs is
 * the executor, where the device is. `name` says what it does and must stay
 * valid for good; `data` stays valid until `cleanup(args)`. Before that
 * `onReply(args, ...)` gets the reply, of at most 256 MiB, on a thread of this
 * process, in stream order; what it throws is the failure of the message.
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
/* What starts the launcher of device processes where OPENREG_DEVICE_LAUNCHER
 * does not say it: a program and its arguments. Errors: InvalidValue. */
OPENREG_API orError_t orSetDeviceLauncher(
    const char* const* arguments,
    size_t count) OPENREG_NOEXCEPT;
/* For a launcher: makes this process that of a device with the memory of `view`
 * but for `distance`, which it finds, and serves until `socket` closes. `start`
 * may be null. Errors: InvalidValue, MemoryAllocation. */
OPENREG_API orError_t orServeDevice(
    int socket,
    const orMemoryView* view,
    orStartExecutor_t start) OPENREG_NOEXCEPT;

/* ---- events ------------------------------------------------------------ */

/* Errors: InvalidValue. */
OPENREG_API orError_t orEventCreate(orEvent_t* event) OPENREG_NOEXCEPT;
/* An event is of no device. One that other processes may open takes a file.
 * Errors: InvalidValue, MemoryAllocation (only for orEventInterprocess). */
OPENREG_API orError_t
orEventCreateWithFlags(orEvent_t* event, unsigned int flags) OPENREG_NOEXCEPT;
/* Marks the end of the work that `stream` has now; the last record counts.
 * Errors: InvalidHandle, MemoryAllocation (16384 records of an event for
 * several processes are to be reached), [device]. */
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
/* Ends the handle at once; who waits for the event goes on waiting.
 * Errors: InvalidHandle. */
OPENREG_API orError_t orEventDestroy(orEvent_t event) OPENREG_NOEXCEPT;

/* ---- graphs ------------------------------------------------------------ */

/* While a stream is captured, what it is given does not run: it becomes a part
 * of a graph, which runs it at each launch. A kernel's `args` are then in use
 * until its `cleanup`, once the graph is destroyed and does not run. A record
 * orders the graph and no more; a stream that waits for it is captured too, and
 * has to be waited for by the first one before the end. A wait for other work
 * is StreamCaptureIsolation, one for another capture StreamCaptureMerge. What
 * would wait for the stream, or asks it, is StreamCaptureUnsupported, and also
 * what runs at once (orLaunchKernelBlocking, copies with memory that is not
 * pinned) or is of memory in stream order (orMallocAsync, orFreeAsync); what
 * waits for a captured record, or asks it, is CapturedEvent. Each of these
 * makes the capture invalid, and later calls StreamCaptureInvalidated. Commands
 * of kernels are not captured. */

/* Begins to capture a stream; work that it has already is none of it. The
 * default stream of a device cannot be captured. Errors: InvalidValue (also: it
 * is captured already), InvalidHandle, StreamCaptureUnsupported (the default
 * stream), [device]. */
OPENREG_API orError_t orStreamBeginCapture(
    orStream_t stream,
    orStreamCaptureMode mode) OPENREG_NOEXCEPT;
/* Ends the capture that began on `stream`, in the same thread unless it is
 * relaxed, and writes its graph; null if this fails, which ends the capture
 * too, but for StreamCaptureUnmatched and StreamCaptureWrongThread.
 * Errors: InvalidValue (also: the stream is not captured), InvalidHandle,
 * StreamCaptureInvalidated, StreamCaptureUnmatched, StreamCaptureUnjoined,
 * StreamCaptureWrongThread. */
OPENREG_API orError_t orStreamEndCapture(orStream_t stream, orGraph_t* graph)
    OPENREG_NOEXCEPT;
/* Whether the stream is captured, and the number of the capture, which no other
 * has; 0 for none. Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orStreamGetCaptureInfo(
    orStream_t stream,
    orStreamCaptureStatus* status,
    uint64_t* id) OPENREG_NOEXCEPT;
/* How many commands a graph has: kernels, messages, copies, sets and functions
 * of the host. Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orGraphGetNodeCount(orGraph_t graph, size_t* count)
    OPENREG_NOEXCEPT;
/* Enqueues all commands of a graph, in the order of `stream`, and after the
 * last launch of the graph. What was captured of other streams runs in streams
 * of the graph's own. A command that fails leaves its error as it would without
 * a graph; the others run. An injected failure counts the commands when they
 * run. A stream that is full may take a part, which the next launch follows.
 * Errors: InvalidValue (the stream is of another device than the captured
 * one), InvalidHandle, NotSupported (the stream is captured),
 * [device]. */
OPENREG_API orError_t orGraphLaunch(orGraph_t graph, orStream_t stream)
    OPENREG_NOEXCEPT;
/* Writes the commands and their order to a file, in the language of Graphviz.
 * Errors: InvalidValue (also: the file cannot be written), InvalidHandle. */
OPENREG_API orError_t orGraphDebugDotPrint(orGraph_t graph, const char* path)
    OPENREG_NOEXCEPT;
/* Ends the handle at once; launches that were enqueued still run. Then the
 * argument blocks are given to their cleanups, on any thread.
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
 * its address. `flags`: 0 or orIpcMemLazyEnablePeerAccess. What both do is
 * ordered by events, or by waiting. If the other process frees the block,
 * resets the device or ends, the bytes stay until all have closed it; so long
 * they count as used there. Errors: InvalidValue (also: the block or its
 * process is gone), InvalidDevice, NotPermitted (this process made the handle),
 * MemoryAllocation, [device]. */
OPENREG_API orError_t orIpcOpenMemHandle(
    void** devPtr,
    orIpcMemHandle_t handle,
    unsigned int flags) OPENREG_NOEXCEPT;
/* Takes one opening back, the last one after all work of the device.
 * Errors: InvalidValue, NotPermitted, Timeout. */
OPENREG_API orError_t orIpcCloseMemHandle(void* devPtr) OPENREG_NOEXCEPT;
/* Writes what another process needs to open an event that was made with
 * orEventInterprocess and orEventDisableTiming.
 * Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orIpcGetEventHandle(
    orIpcEventHandle_t* handle,
    orEvent_t event) OPENREG_NOEXCEPT;
/* Opens an event of another process: both may record it and wait for it. When
 * the process that recorded it ends before the record is reached, waits and
 * queries end with orErrorUnknown. orEventDestroy closes it.
 * Errors: InvalidValue (also: the event or its process is gone), NotPermitted
 * (this process made the handle), MemoryAllocation. */
OPENREG_API orError_t orIpcOpenEventHandle(
    orEvent_t* event,
    orIpcEventHandle_t handle) OPENREG_NOEXCEPT;

/* ---- failures ---------------------------------------------------------- */

/* Injects a failure that counts calls from now on, in the order in which they
 * are made, and hits the ones that `spec` names. Errors: InvalidValue,
 * InvalidDevice. */
OPENREG_API orError_t orFailureInject(
    orFailure_t* failure,
    const orFailureSpec* spec) OPENREG_NOEXCEPT;
/* How many calls the failure has counted, and how many of them it has hit.
 * Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orFailureGetCounts(
    orFailure_t failure,
    uint64_t* calls,
    uint64_t* hits) OPENREG_NOEXCEPT;
/* Ends the failure; work that it has hit already still fails.
 * Errors: InvalidHandle. */
OPENREG_API orError_t orFailureRemove(orFailure_t failure) OPENREG_NOEXCEPT;
/* Loses a device as if it were unplugged: what it runs ends, what it has
 * queued is dropped, and it fails with orErrorDeviceLost until orDeviceReset().
 * Errors: InvalidDevice. */
OPENREG_API orError_t orDeviceLose(int device) OPENREG_NOEXCEPT;
/* Fails a device as a failed assertion in a kernel does: what it has queued is
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
