/* SPDX-License-Identifier: BSD-3-Clause */
/* What the devices did, when and for whom: the part of CUPTI that profilers
 * use.
 *
 * While activity is recorded, each call of the C API and each command of a
 * stream leaves a record: of a command, when it was enqueued, when it started
 * and when it ended. Each thread keeps its records until they are taken, in a
 * buffer of its own of a bounded size; what does not fit is counted. A record
 * is there once what it is about has ended.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC. With OPENREG_ISOLATION=process the
 * process of the device measures what it runs, with the same clock.
 *
 * What is said in openreg.h holds here too. */
#ifndef OPENREG_ACTIVITY_H
#define OPENREG_ACTIVITY_H

#include <openreg/openreg.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* What a record is about. The first five are commands of streams, which also
 * have a device and a stream. */
typedef enum orActivityKind {
  orActivityKernel = 0,   /* orLaunchKernel..., orLaunchMessage... */
  orActivityMemcpy = 1,   /* orMemcpy..., and launches that say so */
  orActivityMemset = 2,   /* orMemset..., and launches that say so */
  orActivityHostFunc = 3, /* orLaunchHostFunc */
  orActivityWait = 4,     /* a stream that waits for an event */
  orActivityMalloc = 5,   /* an allocation, of device or host memory */
  orActivityFree = 6,     /* the same block, freed */
  orActivityCall = 7      /* a call of the C API */
} orActivityKind;
#define orActivityAll 0xffu /* the bits 1 << kind */

/* What a launch does, for people and profilers. */
typedef struct orLaunchInfo {
  size_t structSize;
  const char* name;    /* stays valid for good; null is the function's own */
  orActivityKind kind; /* orActivityKernel, -Memcpy or -Memset; -HostFunc if it
                        * only sends messages, which are the kernels */
  orMemcpyKind direction;  /* of a memcpy */
  orMemoryType hostMemory; /* of a memcpy: what the host's side of it is */
  uint64_t bytes;          /* that it reads and writes, or copies; 0: unknown */
} orLaunchInfo;
#define OPENREG_LAUNCH_INFO_INIT \
  {sizeof(orLaunchInfo),         \
   NULL,                         \
   orActivityKernel,             \
   orMemcpyHostToHost,           \
   orMemoryTypeUnmanaged,        \
   0}

/* Ids that a library above gives to what a thread does, so that it finds the
 * records again. */
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

/* Begins to record what has its bit (1 << kind) in `kinds`, with at most
 * `capacity` records of a thread until they are taken; 0 is 1048576. What was
 * not taken before is dropped, as are ids that were pushed. Commands that were
 * enqueued before are not recorded. There is one who records in a process.
 * Errors: InvalidValue, NotPermitted (activity is recorded already). */
OPENREG_API orError_t orActivityEnable(unsigned int kinds, size_t capacity)
    OPENREG_NOEXCEPT;
/* Records nothing that begins from now on. Commands that were enqueued before
 * still leave their records, until activity is enabled again. */
OPENREG_API orError_t orActivityDisable(void) OPENREG_NOEXCEPT;
/* Waits until the commands that are recorded have ended, without a look at what
 * they failed with; at most so many milliseconds, 0 is for ever.
 * Errors: NotPermitted (in a kernel), Timeout. */
OPENREG_API orError_t orActivityFlush(uint64_t milliseconds) OPENREG_NOEXCEPT;
/* In a kernel: it leaves no record, since it has not done what it is for and is
 * launched once more for that. The call that launched it does leave one.
 * Errors: NotPermitted (not in a kernel). */
OPENREG_API orError_t orActivityForget(void) OPENREG_NOEXCEPT;
/* Takes records of all threads, at most `capacity`, in no order. `count` says
 * how many; there may be more if it is `capacity`. `dropped` says how many
 * found no room since the last call. Errors: InvalidValue. */
OPENREG_API orError_t orActivityTake(
    orActivity* records,
    size_t recordSize, /* sizeof(orActivity) */
    size_t capacity,
    size_t* count,
    uint64_t* dropped) OPENREG_NOEXCEPT;
/* Where the library keeps the kinds that are recorded: 0 is none. Can be read,
 * atomically, until the process ends. Errors: InvalidValue. */
OPENREG_API orError_t orActivityGetState(const unsigned int** kinds)
    OPENREG_NOEXCEPT;
/* Gives what this thread calls from now on an id; ids of a kind are a stack.
 * Does nothing while nothing is recorded. Errors: InvalidValue. */
OPENREG_API orError_t orActivityPushId(orActivityIdKind kind, uint64_t id)
    OPENREG_NOEXCEPT;
/* Takes the last id back, and writes it, or 0 if there was none.
 * Errors: InvalidValue. */
OPENREG_API orError_t orActivityPopId(orActivityIdKind kind, uint64_t* id)
    OPENREG_NOEXCEPT;
/* The number of a stream in the records: the default stream of a device is 0,
 * and others count from 1 in the order in which they were first made.
 * Errors: InvalidValue, InvalidHandle. */
OPENREG_API orError_t orStreamGetNumber(orStream_t stream, int* number)
    OPENREG_NOEXCEPT;

/* As orLaunchKernel, and says what the kernel does; `info` may be null.
 * Errors: InvalidValue, InvalidHandle, [device]. */
OPENREG_API orError_t orLaunchKernelWithInfo(
    orStream_t stream,
    orKernel_t kernel,
    void* args,
    orKernel_t cleanup,
    const orLaunchInfo* info) OPENREG_NOEXCEPT;
/* As orLaunchKernelBlocking, and says what the kernel does; `info` may be null.
 * Errors: InvalidValue, InvalidHandle, LaunchFailure, Timeout, [device]. */
OPENREG_API orError_t orLaunchKernelBlockingWithInfo(
    orStream_t stream,
    orKernel_t kernel,
    void* args,
    const orLaunchInfo* info) OPENREG_NOEXCEPT;
/* As orLaunchMessage with info.name as its name, and says what it does.
 * Errors: InvalidValue, InvalidHandle, NotSupported, [device]. */
OPENREG_API orError_t orLaunchMessageWithInfo(
    orStream_t stream,
    const void* data,
    size_t size,
    orReply_t onReply,
    void* args,
    orKernel_t cleanup,
    const orLaunchInfo* info) OPENREG_NOEXCEPT;
/* As orLaunchMessageBlocking with info.name as its name, and says what it does.
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
