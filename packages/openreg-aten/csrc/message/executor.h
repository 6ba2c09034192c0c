// SPDX-License-Identifier: BSD-3-Clause
// The device side of messages: runs calls that it receives as bytes.
//
// The host side is message/message.h. With OPENREG_ISOLATION=loopback both are
// in one process, and the executor runs on the thread that runs the stream
// command. It receives addresses, numbers and names, but no host objects.
#pragma once

#include "base/export.h"
#include "codec/wire.h"

#include <openreg/openreg.h>

namespace openreg::aten {

/// Runs one message and writes the reply, which also reports a failure of the
/// kernel. Throws codec::Malformed for an invalid message, before any effect.
OPENREG_ATEN_API void execute(codec::ByteSpan message, codec::Bytes& reply);

/// Registers execute() as the executor of the runtime.
OPENREG_ATEN_API void set_executor();

} // namespace openreg::aten

/// Called in a device process, which has no Python.
extern "C" OPENREG_ATEN_API void openreg_aten_start_device(
    const orMemoryView* view);
