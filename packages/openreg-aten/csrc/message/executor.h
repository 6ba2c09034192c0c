// SPDX-License-Identifier: BSD-3-Clause
// The device's side of messages: it runs calls that it only knows as bytes.
//
// The host's side is message/message.h. With OPENREG_ISOLATION=loopback both
// are in one process, and the executor runs on the thread that runs the
// stream's command. It is handed addresses, numbers and names, and no object of
// the host's.
#pragma once

#include "base/export.h"
#include "codec/wire.h"

#include <openreg/openreg.h>

namespace openreg::aten {

/// Runs one message and writes the reply, which also says what failed. Throws
/// codec::Malformed for a message that the host's side does not write; nothing
/// has happened then.
OPENREG_ATEN_API void execute(codec::ByteSpan message, codec::Bytes& reply);

/// Brings execute() as the runtime's executor.
OPENREG_ATEN_API void set_executor();

} // namespace openreg::aten

/// Called in the process of a device, which has no Python.
extern "C" OPENREG_ATEN_API void openreg_aten_start_device(
    const orMemoryView* view);
