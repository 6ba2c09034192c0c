// SPDX-License-Identifier: BSD-3-Clause
// Bytes and descriptors over stream sockets.
#pragma once

#include <cstddef>

namespace openreg::platform {

/// Makes a socket that no program of a child inherits, and that sends no
/// SIGPIPE.
void prepare_socket(int socket) noexcept;
/// Sends all bytes, with a descriptor unless it is -1. False on an error, which
/// errno has.
bool send_all(
    int socket,
    const void* data,
    std::size_t size,
    int descriptor) noexcept;
/// Receives `size` bytes, and a descriptor if one arrives with them. False on
/// an error, which errno has; the end of the stream is ECONNRESET.
bool receive_all(
    int socket,
    void* data,
    std::size_t size,
    int& descriptor) noexcept;

} // namespace openreg::platform
