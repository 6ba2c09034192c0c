// SPDX-License-Identifier: BSD-3-Clause
// Buffer and PinnedBuffer.
#include "bindings.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <system_error>
#include <thread>

namespace openreg::python {
namespace {

using namespace nb::literals;

std::size_t checked_size(const char* function, std::int64_t size) {
  if (size < 0) {
    const std::string text = std::string(function) + ": size is " +
        std::to_string(size) + ", expected 0 or more bytes";
    throw nb::value_error(text.c_str());
  }
  return static_cast<std::size_t>(size);
}

/// Frees a device block, also where this thread must not wait for the device.
void free_block(void* block) noexcept {
  if (block == nullptr || !interpreter_alive()) {
    return; // at the end a kernel may never return; the process frees all
  }
  if (!on_stream()) {
    static_cast<void>(without_gil([&] { return orFree(block); }));
    return;
  }
  try {
    std::thread([block] { static_cast<void>(orFree(block)); }).detach();
  } catch (const std::system_error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    PyErr_WriteUnraisable(nullptr); // the block stays allocated
  }
}

struct Buffer {
  void* address = nullptr;
  std::size_t size;
  int device;

  Buffer(std::size_t size_, int device_) : size(size_), device(device_) {
    const DeviceScope scope(device);
    check(orMalloc(&address, size));
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    free_block(address);
  }
};

struct PinnedBuffer {
  void* address = nullptr;
  std::size_t size;

  explicit PinnedBuffer(std::size_t size_) : size(size_) {
    check(orMallocHost(&address, size));
  }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer() {
    if (interpreter_alive()) {
      static_cast<void>(orFreeHost(address));
    }
  }
};

/// One end of a copy: the memory and the object that owns it.
struct End {
  void* address;
  std::size_t size;
  nb::object owner;
  bool asynchronous; // a copy may return before it is done: no pageable memory
};

bool is_pinned(const void* address) {
  orPointerAttributes attributes;
  check(orPointerGetAttributes(&attributes, address));
  return attributes.type == orMemoryTypeHost;
}

End end_of(nb::handle object, bool writable) {
  if (nb::isinstance<Buffer>(object)) {
    const auto& buffer = nb::cast<const Buffer&>(object);
    return {buffer.address, buffer.size, nb::borrow(object), true};
  }
  // A memoryview keeps the owner from moving or freeing the bytes.
  nb::object view = nb::steal(PyMemoryView_FromObject(object.ptr()));
  if (!view.is_valid()) {
    throw nb::python_error();
  }
  const Py_buffer* bytes = PyMemoryView_GET_BUFFER(view.ptr());
  if (PyBuffer_IsContiguous(bytes, 'C') == 0) {
    throw nb::value_error("the memory to copy must be C-contiguous");
  }
  if (writable && bytes->readonly != 0) {
    throw nb::type_error("the destination of a copy must not be read-only");
  }
  return {
      bytes->buf,
      static_cast<std::size_t>(bytes->len),
      std::move(view),
      is_pinned(bytes->buf)};
}

void copy(
    const End& to,
    const End& from,
    std::size_t size,
    const Stream* stream) {
  if (stream == nullptr) {
    check(without_gil([&] {
      return orMemcpy(to.address, from.address, size, orMemcpyDefault);
    }));
    return;
  }
  check(without_gil([&] {
    return orMemcpyAsync(
        to.address, from.address, size, orMemcpyDefault, stream->handle);
  }));
  if (to.asynchronous && from.asynchronous) {
    hold(stream->handle, nb::make_tuple(to.owner, from.owner));
  }
}

void copy_from(
    nb::handle_t<Buffer> self,
    nb::handle source,
    const Stream* stream) {
  const End from = end_of(source, false);
  copy(end_of(self, true), from, from.size, stream);
}

void copy_to(
    nb::handle_t<Buffer> self,
    nb::handle destination,
    const Stream* stream) {
  const End to = end_of(destination, true);
  copy(to, end_of(self, false), to.size, stream);
}

void fill(nb::handle_t<Buffer> self, int value, const Stream* stream) {
  if (value < 0 || value > 255) {
    const std::string text = "Buffer.fill: value is " + std::to_string(value) +
        ", expected a byte from 0 to 255";
    throw nb::value_error(text.c_str());
  }
  const auto& buffer = nb::cast<const Buffer&>(self);
  if (stream == nullptr) {
    check(without_gil(
        [&] { return orMemset(buffer.address, value, buffer.size); }));
    return;
  }
  check(without_gil([&] {
    return orMemsetAsync(buffer.address, value, buffer.size, stream->handle);
  }));
  hold(stream->handle, nb::make_tuple(self));
}

std::uintptr_t kernel_address(const Buffer& buffer) {
  void* pointer = nullptr;
  if (buffer.address != nullptr) {
    check(orGetKernelPointer(&pointer, buffer.address));
  }
  return reinterpret_cast<std::uintptr_t>(pointer);
}

int refuse_bytes(PyObject* self, Py_buffer* view, int) {
  const auto& buffer = nb::cast<const Buffer&>(nb::handle(self));
  view->obj = nullptr;
  PyErr_Format(
      PyExc_BufferError,
      "the host can not read memory of openreg:%d; copy the %zu bytes into "
      "host memory with Buffer.copy_to()",
      buffer.device,
      buffer.size);
  return -1;
}

int give_bytes(PyObject* self, Py_buffer* view, int flags) {
  static char nothing = 0; // where an empty buffer points
  const auto& buffer = nb::cast<const PinnedBuffer&>(nb::handle(self));
  return PyBuffer_FillInfo(
      view,
      self,
      buffer.address != nullptr ? buffer.address : &nothing,
      static_cast<Py_ssize_t>(buffer.size),
      0,
      flags);
}

PyType_Slot kBufferSlots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(refuse_bytes)},
    {0, nullptr}};
PyType_Slot kPinnedSlots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(give_bytes)},
    {0, nullptr}};

template <typename Object>
std::uintptr_t address_of(const Object& object) {
  return reinterpret_cast<std::uintptr_t>(object.address);
}

} // namespace

void init_memory(nb::module_& m) {
  nb::class_<Buffer>(
      m,
      "Buffer",
      nb::type_slots(kBufferSlots),
      "A block of device memory.\n\n"
      "The host can not read it: it is copied, or reached by a kernel. When\n"
      "the object goes, the block is freed after all work of its device.")
      .def(
          "__init__",
          [](Buffer* self, std::int64_t size, const DeviceLike& device) {
            new (self) Buffer(checked_size("Buffer", size), index_of(device));
          },
          "size"_a,
          "device"_a = nb::none(),
          "Allocates device memory; what it holds is not defined.\n\n"
          "Args:\n"
          "    size: Its size in bytes.\n"
          "    device: Its device, by default the current one.\n\n"
          "Raises:\n"
          "    OpenRegError: If the memory of the device does not suffice.")
      .def_ro("size", &Buffer::size, "Its size in bytes.")
      .def_prop_ro(
          "device",
          [](const Buffer& self) { return Device{self.device}; },
          "The device that it belongs to.")
      .def_prop_ro(
          "address",
          &address_of<Buffer>,
          "The device pointer, which faults if the host follows it.")
      .def_prop_ro(
          "kernel_address", &kernel_address, "Where a kernel finds the bytes.")
      .def(
          "copy_from",
          &copy_from,
          "source"_a,
          "stream"_a = nb::none(),
          nb::sig(
              "def copy_from(self, source: Buffer | collections.abc.Buffer,"
              " stream: Stream | None = None) -> None"),
          "Copies all bytes of ``source`` to the start of this buffer.\n\n"
          "Args:\n"
          "    source: A Buffer of any device, or contiguous host memory.\n"
          "    stream: The stream to copy in the order of. The call then\n"
          "        returns at once if ``source`` is a Buffer or pinned. By\n"
          "        default it waits for the copy.\n\n"
          "Raises:\n"
          "    OpenRegError: If ``source`` is larger than this buffer.")
      .def(
          "copy_to",
          &copy_to,
          "destination"_a,
          "stream"_a = nb::none(),
          nb::sig(
              "def copy_to(self, destination: Buffer | collections.abc.Buffer,"
              " stream: Stream | None = None) -> None"),
          "Fills ``destination`` with bytes from the start of this buffer.\n\n"
          "Args:\n"
          "    destination: A Buffer of any device, or contiguous and "
          "writable\n"
          "        host memory.\n"
          "    stream: The stream to copy in the order of. The call then\n"
          "        returns at once if ``destination`` is a Buffer or pinned.\n"
          "        By default it waits for the copy.\n\n"
          "Raises:\n"
          "    OpenRegError: If ``destination`` is larger than this buffer.")
      .def(
          "fill",
          &fill,
          "value"_a,
          "stream"_a = nb::none(),
          nb::sig(
              "def fill(self, value: int, stream: Stream | None = None)"
              " -> None"),
          "Sets every byte.\n\n"
          "Args:\n"
          "    value: The byte, 0 to 255.\n"
          "    stream: The stream to do it in the order of, without waiting.\n"
          "        By default the call waits.")
      .def("__repr__", [](const Buffer& self) {
        return "Buffer(size=" + std::to_string(self.size) +
            ", device=" + std::to_string(self.device) + ")";
      });

  nb::class_<PinnedBuffer>(
      m,
      "PinnedBuffer",
      nb::type_slots(kPinnedSlots),
      "Host memory that copies can use without waiting.\n\n"
      "It supports the buffer protocol: ``memoryview(pinned)``.")
      .def(
          "__init__",
          [](PinnedBuffer* self, std::int64_t size) {
            new (self) PinnedBuffer(checked_size("PinnedBuffer", size));
          },
          "size"_a,
          "Allocates ``size`` bytes; what they hold is not defined.")
      .def_ro("size", &PinnedBuffer::size, "Its size in bytes.")
      .def_prop_ro("address", &address_of<PinnedBuffer>, "Where it starts.")
      .def("__repr__", [](const PinnedBuffer& self) {
        return "PinnedBuffer(size=" + std::to_string(self.size) + ")";
      });
}

} // namespace openreg::python
