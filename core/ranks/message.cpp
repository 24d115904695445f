#include "core/ranks/message.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace retrograd {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::uint64_t magic = 0x3230'4547'4152'5452;  // of the layout below; both ends are the same program
constexpr std::size_t mostTensors = 100'000, longestName = 10'000, mostDimensions = 64;
constexpr std::int64_t mostElements = std::int64_t{1} << 50;

std::size_t aligned(std::size_t offset) { return (offset + alignment - 1) / alignment * alignment; }

class Writer {
 public:
  void number(std::uint64_t value) { bytes(std::as_bytes(std::span(&value, 1))); }
  void text(std::string_view value) {
    number(value.size());
    bytes(std::as_bytes(std::span(value)));
  }
  void bytes(std::span<const std::byte> value) { out.insert(out.end(), value.begin(), value.end()); }

  std::vector<std::byte> out;
};

[[noreturn]] void refuse(const char* what) { badInput(fmt::format("a message of another rank is damaged: {}", what)); }

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : all_(bytes.size()), rest_(bytes) {}

  std::size_t position() const { return all_ - rest_.size(); }
  std::uint64_t number(std::uint64_t most, const char* what) {
    std::uint64_t value = 0;
    const auto raw = take(sizeof value, what);
    std::memcpy(&value, raw.data(), sizeof value);
    if (value > most) refuse(what);
    return value;
  }
  std::string text(const char* what) {
    const auto raw = take(number(longestName, what), what);
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }

 private:
  std::span<const std::byte> take(std::size_t count, const char* what) {
    if (count > rest_.size()) refuse(what);
    const auto part = rest_.first(count);
    rest_ = rest_.subspan(count);
    return part;
  }
  std::size_t all_;
  std::span<const std::byte> rest_;
};

void requirePlain(const std::string& name, const TensorData& tensor) {
  if (tensor.meta.layout != Layout::strided || tensor.meta.conjugate || tensor.meta.negative ||
      tensor.memory.type != Device::Type::cpu)
    badUse("only plain strided tensors of the host are sent in messages", name);
  if (const std::size_t reached = tensor.meta.storageBytes(); tensor.meta.elements() > 0 && reached > tensor.bytes)
    throw Error(ErrorCode::internal, "the tensor reaches beyond its storage", name);
}

void write(Writer& writer, const std::string& name, const TensorMeta& meta) {
  writer.text(name);
  writer.number(static_cast<std::uint64_t>(meta.dtype));
  writer.number(meta.sizes.size());
  for (const auto size : meta.sizes) writer.number(static_cast<std::uint64_t>(size));
}

std::pair<std::string, TensorMeta> read(Reader& reader) {
  std::pair<std::string, TensorMeta> one;
  auto& [name, meta] = one;
  name = reader.text("a name");
  meta.dtype = static_cast<DType>(reader.number(dtypeCount - 1, "a dtype"));
  meta.sizes.resize(reader.number(mostDimensions, "a number of dimensions"));
  std::int64_t left = mostElements;  // a product that must not overflow before it is compared
  for (auto& size : meta.sizes) {
    size = static_cast<std::int64_t>(reader.number(mostElements, "a size"));
    if (size > 0) left /= size;
  }
  if (left == 0) refuse("its sizes");
  meta.strides = contiguousStrides(meta.sizes);
  return one;
}

/// Copies dimension by dimension; the innermost one is a loop over elements or, where these lie side by side, one copy.
std::byte* pack(const TensorMeta& meta, std::size_t dimension, const std::byte* from, std::byte* to) {
  const std::size_t item = itemSize(meta.dtype);
  if (dimension == meta.sizes.size()) {
    std::memcpy(to, from, item);
    return to + item;
  }
  const auto count = meta.sizes[dimension], step = meta.strides[dimension];
  if (dimension + 1 == meta.sizes.size() && step == 1) {
    std::memcpy(to, from, count * item);
    return to + count * item;
  }
  for (std::int64_t i = 0; i < count; ++i)
    to = pack(meta, dimension + 1, from + i * step * static_cast<std::int64_t>(item), to);
  return to;
}

}  // namespace

void packDense(const TensorData& tensor, std::span<std::byte> out) {
  const auto& meta = tensor.meta;
  if (meta.elements() == 0) return;
  const auto* first = tensor.data + meta.offset * itemSize(meta.dtype);
  if (meta.strides == contiguousStrides(meta.sizes)) std::memcpy(out.data(), first, out.size());
  else pack(meta, 0, first, out.data());
}

std::vector<std::byte> encodeMessage(const Message& message) {
  Writer writer;
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : message.tensors) bytes += tensor.meta.bytes() + name.size() + 2 * alignment;
  writer.out.reserve(bytes);
  writer.number(magic);
  writer.number(message.tensors.size());
  writer.number(message.announced.size());
  for (const auto& [name, tensor] : message.tensors) {
    requirePlain(name, tensor);
    write(writer, name, tensor.meta);
  }
  for (const auto& [name, meta] : message.announced) write(writer, name, meta);
  for (const auto& [name, tensor] : message.tensors) {
    const std::size_t begin = aligned(writer.out.size()), size = tensor.meta.bytes();
    writer.out.resize(begin + size);
    packDense(tensor, std::span(writer.out).subspan(begin, size));
  }
  return std::move(writer.out);
}

Message decodeMessage(const std::shared_ptr<const std::vector<std::byte>>& bytes) {
  Reader reader(*bytes);
  if (reader.number(~std::uint64_t{0}, "its head") != magic) refuse("its head");
  std::vector<std::pair<std::string, TensorMeta>> list(reader.number(mostTensors, "the number of tensors"));
  const auto announced = reader.number(mostTensors, "the number of tensors");
  for (auto& one : list) one = read(reader);
  Message message;
  for (std::uint64_t i = 0; i < announced; ++i)
    if (!message.announced.insert(read(reader)).second) refuse("a name is there twice");
  auto offset = reader.position();
  for (auto& [name, meta] : list) {
    TensorData tensor;
    offset = aligned(offset);
    tensor.bytes = meta.bytes();
    if (offset > bytes->size() || tensor.bytes > bytes->size() - offset) refuse("it is too short");
    tensor.data = bytes->data() + offset;
    tensor.owner = bytes;
    tensor.meta = std::move(meta);
    offset += tensor.bytes;
    if (message.announced.contains(name) || !message.tensors.emplace(std::move(name), std::move(tensor)).second)
      refuse("a name is there twice");
  }
  if (offset != bytes->size()) refuse("it is too long");
  return message;
}

}  // namespace retrograd
