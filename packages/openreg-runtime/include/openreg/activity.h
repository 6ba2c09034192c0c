/* SPDX-License-Identifier: BSD-3-Clause */
/* Activity records for profilers, like CUPTI: what ran on the devices, when,
 * and which call enqueued it.
 *
 * While activity is recorded, each call of the C API and each command of a
 * stream leaves a record. The record of a command contains the times at which
 * it was enqueued, started and ended. Each thread keeps its records in a
 * bounded buffer until they are taken; records that do not fit are counted. A
 * record appears when its call or command has ended.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC. With OPENREG_ISOLATION=process the
 * device process measures its commands with the same clock.
 *
 * The rules of openreg.h apply. */
#ifndef OPENREG_ACTIVITY_H
#define OPENREG_ACTIVITY_H

#include <openreg/openreg.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* The kind of a record. The first five are commands of streams, which have a
 * device and a stream. */
typedef enum orActivityKind {
  orActivityKernel = 0,   /* orLaunchKernel..., orLaunchMessage... */
  orActivityMemcpy = 1,   /* orMemcpy..., and launches of this kind */
  orActivityMemset = 2,   /* orMemset..., and launches of this kind */
  orActivityHostFunc = 3, /* orLaunchHostFunc */
  orActivityWait = 4,     /* a stream that waits for an event */
  orActivityMalloc = 5,   /* an allocation, of device or host memory */
  orActivityFree = 6,     /* the free of a block */
  orActivityCall = 7      /* a call of the C API */
} orActivityKind;
#define orActivityAll 0xffu /* the bits 1 << kind */

/* The description of a launch for profilers. */
typedef struct orLaunchInfo {
  size_t structSize;
  const char* name;    /* stays valid; null: the function's own name */
  orActivityKind kind; /* orActivityKernel, -Memcpy or -Memset; -HostFunc if it
                        * only sends messages, which are the kernels */
  orMemcpyKind direction;  /* of a memcpy */
  orMemoryType hostMemory; /* of a memcpy: its host side */
  uint64_t bytes;          /* read and written, or copied; 0: unknown */
} orLaunchInfo;
#define OPENREG_LAUNCH_INFO_INIT \
  {sizeof(orLaunchInfo),         \
   NULL,                         \
   orActivityKernel,             \
   orMemcpyHostToHost,           \
   orMemoryTypeUnmanaged,        \
   0}

/* Ids that a library above the runtime attaches to a thread's calls, to
 * identify their records. */
typedef enum orActivityIdKind {
  orActivityIdExternal = 0, /* an operator */
  orActivityIdUser = 1      /* a range that the program has named */
} orActivityIdKind;

typedef struct orActivity {
  orActivityKind kind;
  orError_t error; /* that it failed with; of a command that was dropped too */
  int device;      /* -1: none */
  int stream;      /* its number on the device, orStreamGetNumber(); -1: none */
  int process;     /* that made the call */
  int thread;      /* that made the call, as the system numbers it */
  uint64_t correlation; /* the number of the call that caused it; unique */
  uint64_t externalId;  /* of the thread when it made the call; 0: none */
  uint64_t userId;
  uint64_t enqueued; /* nanoseconds; of a call and an allocation: its start */
  uint64_t started;
  uint64_t ended;
  uint64_t bytes;
  const void* address; /* of an allocation */
  const char* name;    /* valid until the process ends; never null */
  orMemcpyKind direction;
  orMemoryType hostMemory;
  int nested; /* 1: a part of a command of the same stream, which contains it */
} orActivity;

/* Starts recording the kinds whose bit (1 << kind) is in `kinds`. A thread
 * keeps at most `capacity` records until they are taken; 0 means 1048576. Drops
 * records that were not taken, and pushed ids. Commands that were enqueued
 * before are not recorded. A process has only one recording at a time.
 * Errors: InvalidValue, NotPermitted (recording is on already). */
OPENREG_API orError_t orActivityEnable(unsigned int kinds, size_t capacity)
    OPENREG_NOEXCEPT;
/* Stops recording. Commands that were enqueued before still leave their
 * records, until activity is enabled again. */
OPENREG_API orError_t orActivityDisable(void) OPENREG_NOEXCEPT;
/* Waits until the recorded commands have ended, and ignores their failures.
 * Waits at most `milliseconds`; 0 means forever.
 * Errors: NotPermitted (in a kernel), Timeout. */
OPENREG_API orError_t orActivityFlush(uint64_t milliseconds) OPENREG_NOEXCEPT;
/* Discards the record of the calling kernel, which will be launched again
 * because it has not done its work. The call that launched it still has a
 * record.
 * Errors: NotPermitted (not in a kernel). */
OPENREG_API orError_t orActivityForget(void) OPENREG_NOEXCEPT;
/* Takes at most `capacity` records of all threads, unordered. Writes their
 * number to `count`; if it is `capacity`, there may be more. `dropped` is the
 * number of records that found no room since the last call. Errors:
 * InvalidValue. */
OPENREG_API orError_t orActivityTake(
    orActivity* records,
    size_t recordSize, /* sizeof(orActivity) */
    size_t capacity,
    size_t* count,
    uint64_t* dropped) OPENREG_NOEXCEPT;
/* The address of the bits of the recorded kinds; 0 means that recording is off.
 * It can be read, atomically, until the process ends. Errors: InvalidValue. */
OPENREG_API orError_t orActivityGetState(const unsigned int** kinds)
    OPENREG_NOEXCEPT;
/* Attaches an id to this thread's calls from now on; the ids of a kind form a
 * stack. Does nothing while nothing is recorded. Errors: InvalidValue. */
OPENREG_API orError_t orActivityPushId(orActivityIdKind kind, uint64_t id)
    OPENREG_NOEXCEPT;
/* Removes the last id and writes it, or 0 if there was none.
 * Errors: InvalidValue. */
OPENREG_API orError_t orActivityPopId(orActivityIdKind kind, uint64_t* id)
    OPENREG_NOEXCEPT;
/* The number of a stream in the records: the default stream of a device is 0,
 * and others count from 1 in the order in which they were first made.
 * Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orStreamGetNumber(orStream_t stream, int* number)
    OPENREG_NOEXCEPT;

/* As orLaunchKernel, with a description of the kernel; `info` may be null.
 * Errors: InvalidValue, InvalidHandle, [device]. */
OPENREG_API orError_t orLaunchKernelWithInfo(
    orStream_t stream,
    orKernel_t kernel,
    void* args,
    orKernel_t cleanup,
    const orLaunchInfo* info) OPENREG_NOEXCEPT;
/* As orLaunchKernelBlocking, with a description of the kernel; `info` may be
 * null.
 * Errors: InvalidValue, InvalidHandle, LaunchFailure, Timeout, [device]. */
OPENREG_API orError_t orLaunchKernelBlockingWithInfo(
    orStream_t stream,
    orKernel_t kernel,
    void* args,
    const orLaunchInfo* info) OPENREG_NOEXCEPT;
/* As orLaunchMessage with info.name as its name, and with a description.
 * Errors: InvalidValue, InvalidHandle, NotSupported, [device]. */
OPENREG_API orError_t orLaunchMessageWithInfo(
    orStream_t stream,
    const void* data,
    size_t size,
    orReply_t onReply,
    void* args,
    orKernel_t cleanup,
    const orLaunchInfo* info) OPENREG_NOEXCEPT;
/* As orLaunchMessageBlocking with info.name as its name, and with a
 * description.
 * Errors: InvalidValue, InvalidHandle, NotSupported, LaunchFailure, Timeout,
 * [device]. */
OPENREG_API orError_t orLaunchMessageBlockingWithInfo(
    orStream_t stream,
    const void* data,
    size_t size,
    orReply_t onReply,
    void* args,
    const orLaunchInfo* info) OPENREG_NOEXCEPT;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* OPENREG_ACTIVITY_H */
