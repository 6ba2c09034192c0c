// SPDX-License-Identifier: BSD-3-Clause
// Encoding and decoding of values, with checks of what is read.
#include "codec/values.h"

#include "device/device.h"

#include <ATen/core/jit_type.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace openreg::aten::codec {
namespace {

enum class Tag : std::uint8_t {
  kNone,
  kTensor,
  kInt,
  kDouble,
  kBool,
  kComplex,
  kText,
  kDevice,
  kGenerator,
  kList,
  kLast = kList,
};

enum class TensorTag : std::uint8_t {
  kUndefined,
  kKnown,
  kNew,
  kLast = kNew,
};

enum class StorageTag : std::uint8_t {
  kKnown,
  kDevice,
  kHost,
  kFresh,
  kLast = kFresh,
};

enum class ElementTag : std::uint8_t {
  kTensor,
  kOptionalTensor,
  kInt,
  kDouble,
  kBool,
  kComplex,
  kNumber,
  kText,
  kLast = kText,
};

enum Flag : std::uint8_t {
  kConj = 1,
  kNeg = 2,
  kWrapped = 4,
  kRequiresGrad = 8,
  kAllFlags = 15,
};

// PyTorch's own limit is 64.
constexpr std::size_t kMostDimensions = 64;
// Lists of lists are no argument of an operator with plain types.
constexpr int kMostDepth = 2;

c10::TypePtr type_of(ElementTag tag) {
  switch (tag) {
    case ElementTag::kTensor:
      return c10::TensorType::get();
    case ElementTag::kOptionalTensor:
      return c10::OptionalType::ofTensor();
    case ElementTag::kInt:
      return c10::IntType::get();
    case ElementTag::kDouble:
      return c10::FloatType::get();
    case ElementTag::kBool:
      return c10::BoolType::get();
    case ElementTag::kComplex:
      return c10::ComplexType::get();
    case ElementTag::kNumber:
      return c10::NumberType::get();
    case ElementTag::kText:
      return c10::StringType::get();
  }
  throw Malformed("unknown type of elements");
}

/// The tag of the elements of a list, or none.
std::optional<ElementTag> tag_of(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return ElementTag::kTensor;
    case c10::TypeKind::OptionalType:
      return *type.containedType(0) == *c10::TensorType::get()
          ? std::optional(ElementTag::kOptionalTensor)
          : std::nullopt;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return ElementTag::kInt;
    case c10::TypeKind::FloatType:
      return ElementTag::kDouble;
    case c10::TypeKind::BoolType:
      return ElementTag::kBool;
    case c10::TypeKind::ComplexType:
      return ElementTag::kComplex;
    case c10::TypeKind::NumberType:
      return ElementTag::kNumber;
    case c10::TypeKind::StringType:
      return ElementTag::kText;
    default:
      return std::nullopt;
  }
}

bool fits(ElementTag tag, const c10::IValue& value) {
  switch (tag) {
    case ElementTag::kTensor:
      return value.isTensor();
    case ElementTag::kOptionalTensor:
      return value.isTensor() || value.isNone();
    case ElementTag::kInt:
      return value.isInt();
    case ElementTag::kDouble:
      return value.isDouble();
    case ElementTag::kBool:
      return value.isBool();
    case ElementTag::kComplex:
      return value.isComplexDouble();
    case ElementTag::kNumber:
      return value.isScalar();
    case ElementTag::kText:
      return value.isString();
  }
  return false;
}

/// Dense, with strides, and nothing that its geometry does not say.
bool is_plain(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kPlain =
      c10::DispatchKeySet(
          {c10::DispatchKey::CPU,
           c10::DispatchKey::Conjugate,
           c10::DispatchKey::Negative,
           c10::DispatchKey::ADInplaceOrView}) |
      c10::DispatchKeySet(c10::DispatchKey::AutogradCPU) |
      c10::DispatchKeySet(c10::DispatchKey::AutocastCPU);
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return tensor.device().is_cpu() && tensor.layout() == c10::kStrided &&
      tensor.has_storage() && !impl.has_symbolic_sizes_strides() &&
      (impl.key_set().raw_repr() & ~kPlain.raw_repr()) == 0;
}

std::uint8_t flags_of(const c10::TensorImpl& tensor) {
  return static_cast<std::uint8_t>(
      (tensor.is_conj() ? kConj : 0) | (tensor.is_neg() ? kNeg : 0) |
      (tensor.is_wrapped_number() ? kWrapped : 0) |
      (tensor.requires_grad() ? kRequiresGrad : 0));
}

template <typename Known>
std::optional<std::uint32_t> find(
    const std::vector<Known>& known,
    const void* wanted,
    const void* (*identity)(const Known&)) {
  for (std::size_t i = known.size(); i-- > 0;) {
    if (identity(known[i]) == wanted) {
      return static_cast<std::uint32_t>(i);
    }
  }
  return std::nullopt;
}

const void* impl_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl();
}
const void* impl_of_storage(const c10::Storage& storage) {
  return storage.unsafeGetStorageImpl();
}

template <typename Known>
const Known& known_at(const std::vector<Known>& known, std::uint32_t number) {
  if (number >= known.size()) {
    throw Malformed("number " + std::to_string(number) + " is not known");
  }
  return known[number];
}

struct Generators {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, c10::weak_intrusive_ptr<c10::GeneratorImpl>>
      by_number;
  std::unordered_map<const c10::GeneratorImpl*, std::uint64_t> numbers;
  std::uint64_t next = 1;
};

Generators& generators() {
  static auto* value = new Generators; // for threads that outlive main()
  return *value;
}

} // namespace

void check_extent(
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    std::int64_t offset,
    std::size_t item,
    std::size_t nbytes) {
  std::int64_t last = offset;
  bool overflows = offset < 0;
  bool empty = false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    overflows = overflows || sizes[i] < 0 || strides[i] < 0;
    empty = empty || sizes[i] == 0;
  }
  for (std::size_t i = 0; i < sizes.size() && !overflows && !empty; ++i) {
    std::int64_t extent = 0;
    overflows = __builtin_mul_overflow(sizes[i] - 1, strides[i], &extent) ||
        __builtin_add_overflow(last, extent, &last);
  }
  std::uint64_t end = 0;
  if (overflows ||
      (!empty &&
       (__builtin_mul_overflow(
            static_cast<std::uint64_t>(last) + 1, item, &end) ||
        end > nbytes))) {
    throw Malformed("a tensor does not lie in its storage");
  }
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) {
    if (size != 0 && __builtin_mul_overflow(elements, size, &elements)) {
      throw Malformed("a tensor has too many elements");
    }
  }
}

namespace {

/// False if the program has cut the storage since.
bool lies_in_storage(const c10::TensorImpl& tensor) {
  try {
    check_extent(
        tensor.sizes(),
        tensor.strides(),
        tensor.storage_offset(),
        tensor.itemsize(),
        tensor.storage().nbytes());
    return true;
  } catch (const Malformed&) {
    return false;
  }
}

/// Whether the host's memory has more bytes than the elements: those stay.
bool is_part_of_host_storage(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  return storage.data() != nullptr && to_device(storage.data()) == nullptr &&
      storage.nbytes() != tensor.nbytes();
}

} // namespace

// ---- writing ----------------------------------------------------------------

bool ValueWriter::write(const c10::IValue& value) {
  if (value.isNone()) {
    out_.put(Tag::kNone);
  } else if (value.isTensor()) {
    out_.put(Tag::kTensor);
    return write_tensor(value.toTensor());
  } else if (value.isInt()) {
    out_.put(Tag::kInt);
    out_.put(value.toInt());
  } else if (value.isDouble()) {
    out_.put(Tag::kDouble);
    out_.put(value.toDouble());
  } else if (value.isBool()) {
    out_.put(Tag::kBool);
    out_.put(static_cast<std::uint8_t>(value.toBool()));
  } else if (value.isComplexDouble()) {
    out_.put(Tag::kComplex);
    out_.put(value.toComplexDouble().real());
    out_.put(value.toComplexDouble().imag());
  } else if (value.isString()) {
    out_.put(Tag::kText);
    out_.put_text(value.toStringRef());
  } else if (value.isDevice()) {
    // Calls are for the CPU's kernels: there is no other device.
    out_.put(Tag::kDevice);
    return value.toDevice().is_cpu();
  } else if (value.isGenerator()) {
    out_.put(Tag::kGenerator);
    out_.put(number_of(value.toGenerator()));
  } else if (value.isList()) {
    return write_list(value);
  } else {
    return false;
  }
  return true;
}

bool ValueWriter::write_list(const c10::IValue& value) {
  const c10::List<c10::IValue> list = value.toList();
  const auto tag = tag_of(*list.elementType());
  if (!tag) {
    return false;
  }
  out_.put(Tag::kList);
  out_.put(*tag);
  out_.put_count(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!write(list.get(i))) {
      return false;
    }
  }
  return true;
}

bool ValueWriter::write_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    out_.put(TensorTag::kUndefined);
    return true;
  }
  if (const auto number = find(numbered_.tensors, impl_of(tensor), &impl_of)) {
    out_.put(TensorTag::kKnown);
    out_.put(*number);
    return true;
  }
  if (!is_plain(tensor)) {
    return false;
  }
  if (!lies_in_storage(*tensor.unsafeGetTensorImpl())) {
    return false;
  }
  out_.put(TensorTag::kNew);
  numbered_.tensors.push_back(tensor);
  if (direction_ == Direction::kCall && is_part_of_host_storage(tensor)) {
    write_strided(*tensor.clone().unsafeGetTensorImpl());
  } else {
    write_strided(*tensor.unsafeGetTensorImpl());
  }
  return true;
}

void ValueWriter::write_strided(const c10::TensorImpl& tensor) {
  out_.put(flags_of(tensor));
  out_.put(c10::typeMetaToScalarType(tensor.dtype()));
  out_.put_numbers(tensor.sizes());
  out_.put_numbers(tensor.strides());
  out_.put(tensor.storage_offset());
  write_storage(tensor.storage());
}

void ValueWriter::write_storage(const c10::Storage& storage) {
  if (const auto number = find(
          numbered_.storages, impl_of_storage(storage), &impl_of_storage)) {
    out_.put(StorageTag::kKnown);
    out_.put(*number);
    return;
  }
  numbered_.storages.push_back(storage);
  const c10::StorageImpl& impl = *storage.unsafeGetStorageImpl();
  if (direction_ == Direction::kReply) {
    out_.put(StorageTag::kFresh);
    out_.put(static_cast<std::uint64_t>(impl.nbytes()));
    return;
  }
  const void* address = to_device(impl.data());
  if (address != nullptr || impl.data() == nullptr) {
    out_.put(StorageTag::kDevice);
    out_.put(
        static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address)));
    out_.put(static_cast<std::uint64_t>(impl.nbytes()));
    out_.put(static_cast<std::uint8_t>(impl.resizable()));
    return;
  }
  out_.put(StorageTag::kHost);
  out_.put_count(impl.nbytes());
  out_.put_raw(impl.data(), impl.nbytes());
}

// ---- reading ----------------------------------------------------------------

c10::IValue ValueReader::read_value(int depth) {
  switch (in_.get_enum<Tag>()) {
    case Tag::kNone:
      return {};
    case Tag::kTensor:
      return read_tensor();
    case Tag::kInt:
      return in_.get<std::int64_t>();
    case Tag::kDouble:
      return in_.get<double>();
    case Tag::kBool:
      return in_.get_flag();
    case Tag::kComplex: {
      const auto real = in_.get<double>();
      return c10::complex<double>(real, in_.get<double>());
    }
    case Tag::kText:
      return in_.get_text();
    case Tag::kDevice:
      return c10::Device(c10::kCPU);
    case Tag::kGenerator:
      return find_generator(in_.get<std::uint64_t>());
    case Tag::kList:
      return read_list(depth + 1);
  }
  throw Malformed("unknown tag");
}

c10::IValue ValueReader::read_list(int depth) {
  if (depth > kMostDepth) {
    throw Malformed("lists are nested too deeply");
  }
  const auto tag = in_.get_enum<ElementTag>();
  const std::size_t count = in_.get_count();
  std::vector<c10::IValue> elements;
  elements.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    elements.push_back(read_value(depth));
    if (!fits(tag, elements.back())) {
      throw Malformed("an element is not of its list's type");
    }
  }
  c10::impl::GenericList list(type_of(tag));
  list.reserve(count);
  for (c10::IValue& element : elements) {
    list.push_back(std::move(element));
  }
  return list;
}

at::Tensor ValueReader::read_tensor() {
  switch (in_.get_enum<TensorTag>()) {
    case TensorTag::kUndefined:
      return {};
    case TensorTag::kKnown:
      return known_at(numbered_.tensors, in_.get<std::uint32_t>());
    case TensorTag::kNew:
      return read_new_tensor();
  }
  throw Malformed("unknown tag of a tensor");
}

at::Tensor ValueReader::read_new_tensor() {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::DispatchKeySet(c10::DispatchKey::CPU),
      caffe2::TypeMeta::Make<float>(),
      c10::Device(c10::kCPU));
  read_strided(*tensor.unsafeGetTensorImpl());
  numbered_.tensors.push_back(tensor);
  return tensor;
}

void ValueReader::read_strided(c10::TensorImpl& tensor) {
  const auto flags = in_.get<std::uint8_t>();
  if ((flags & ~unsigned{kAllFlags}) != 0) {
    throw Malformed("unknown flags of a tensor");
  }
  const auto dtype = static_cast<c10::ScalarType>(in_.get<std::int8_t>());
  if (dtype < c10::ScalarType::Byte || dtype >= c10::ScalarType::NumOptions ||
      dtype == c10::ScalarType::Undefined) {
    throw Malformed("unknown dtype of a tensor");
  }
  const auto sizes = in_.get_numbers<std::int64_t>();
  const auto strides = in_.get_numbers<std::int64_t>();
  const auto offset = in_.get<std::int64_t>();
  if (sizes.size() > kMostDimensions || sizes.size() != strides.size()) {
    throw Malformed("sizes and strides of a tensor do not fit");
  }
  const c10::Storage storage = read_storage();
  const auto meta = c10::scalarTypeToTypeMeta(dtype);
  check_extent(sizes, strides, offset, meta.itemsize(), storage.nbytes());
  tensor.set_storage_and_dtype(storage, meta);
  tensor.set_sizes_and_strides(sizes, strides, offset);
  tensor._set_conj((flags & kConj) != 0);
  tensor._set_neg((flags & kNeg) != 0);
  if ((flags & kWrapped) != 0) {
    if (!sizes.empty()) {
      throw Malformed("a number has dimensions");
    }
    tensor.set_wrapped_number(true);
  }
  if ((flags & kRequiresGrad) != 0) {
    tensor.set_requires_grad(true);
  }
}

c10::Storage ValueReader::read_storage() {
  switch (in_.get_enum<StorageTag>()) {
    case StorageTag::kKnown:
      return known_at(numbered_.storages, in_.get<std::uint32_t>());
    case StorageTag::kDevice: {
      const auto address = in_.get<std::uint64_t>();
      const auto nbytes = in_.get<std::uint64_t>();
      const bool resizable = in_.get_flag();
      if (address == 0 && nbytes > 0) {
        throw Malformed("a storage is nowhere");
      }
      numbered_.storages.push_back(source_.device(address, nbytes, resizable));
      break;
    }
    case StorageTag::kHost:
      numbered_.storages.push_back(source_.host(in_.take(in_.get_count())));
      break;
    case StorageTag::kFresh:
      numbered_.storages.push_back(source_.fresh(in_.get<std::uint64_t>()));
      break;
  }
  return numbered_.storages.back();
}

// ---- generators -------------------------------------------------------------

std::uint64_t number_of(const at::Generator& generator) {
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  c10::GeneratorImpl* impl = generator.unsafeGetGeneratorImpl();
  if (const auto found = all.numbers.find(impl); found != all.numbers.end()) {
    if (!all.by_number.at(found->second).expired()) {
      return found->second;
    }
    all.by_number.erase(found->second); // another one at the same address
  }
  const std::uint64_t number = all.next++;
  all.by_number.emplace(
      number,
      c10::weak_intrusive_ptr<c10::GeneratorImpl>(generator.getIntrusivePtr()));
  all.numbers[impl] = number;
  return number;
}

at::Generator find_generator(std::uint64_t number) {
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_number.find(number);
  auto impl = found == all.by_number.end()
      ? c10::intrusive_ptr<c10::GeneratorImpl>()
      : found->second.lock();
  if (!impl) {
    throw Malformed("generator " + std::to_string(number) + " is not known");
  }
  return at::Generator(std::move(impl));
}

void collect_generators(
    const c10::IValue& value,
    std::vector<at::Generator>& generators) {
  if (value.isGenerator()) {
    generators.push_back(value.toGenerator());
  }
}

} // namespace openreg::aten::codec
