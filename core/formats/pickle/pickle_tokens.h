#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/formats/files/byte_stream.h"

namespace retrograd::pickle_opcodes {

/// Opcodes of Python's pickle protocols 0 to 4 that plain data needs.
enum Opcode : std::uint8_t {
  proto = 0x80,
  frame = 0x95,
  stop = '.',
  mark = '(',
  popMark = '1',
  pop = '0',
  none = 'N',
  newTrue = 0x88,
  newFalse = 0x89,
  binInt = 'J',
  binInt1 = 'K',
  binInt2 = 'M',
  long1 = 0x8a,
  binFloat = 'G',
  binUnicode = 'X',
  shortBinUnicode = 0x8c,
  shortBinString = 'U',
  emptyTuple = ')',
  tuple = 't',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  emptyList = ']',
  append = 'a',
  appends = 'e',
  emptyDict = '}',
  setItem = 's',
  setItems = 'u',
  global = 'c',
  stackGlobal = 0x93,
  reduce = 'R',
  newObject = 0x81,
  build = 'b',
  persistent = 'Q',
  binPut = 'q',
  longBinPut = 'r',
  binGet = 'h',
  longBinGet = 'j',
  memoize = 0x94,
  // Only next to tensors (PickleRecord::opaque):
  shortBinBytes = 'C',
  binBytes = 'B',
  binBytes8 = 0x8e,
  byteArray8 = 0x96,
  binUnicode8 = 0x8d,
  long4 = 0x8b,
  emptySet = 0x8f,
  addItems = 0x90,
  frozenSet = 0x91,
  newObjectWithKeywords = 0x92
};

}  // namespace retrograd::pickle_opcodes

namespace retrograd {

/// The opcodes of a pickle with their arguments, one after the other. Of bytes in memory, or of a stream, of which a
/// window is kept. Throws Error(badInput) where the pickle is cut off.
class PickleTokens {
 public:
  explicit PickleTokens(std::string_view code) : at_(code.data()), end_(code.data() + code.size()) {}
  explicit PickleTokens(ByteStream& stream) : stream_(&stream) {}

  /// Reads an opcode and its argument, and returns the opcode. An opcode that is not in pickle_opcodes has none.
  std::uint8_t next();
  /// Reads the next opcode only where it takes a value from the memo, and all of it lies in the window: lists of frames
  /// are long runs of these. integer() is then the slot.
  bool nextIsGet() {
    const auto left = end_ - at_;
    if (left > 1 && *at_ == pickle_opcodes::binGet) {
      integer_ = static_cast<std::uint8_t>(at_[1]);
      at_ += 2;
      return true;
    }
    if (left < 5 || *at_ != pickle_opcodes::longBinGet) return false;
    ++at_;
    integer_ = number<std::uint32_t>();
    return true;
  }
  /// The argument of the last opcode, where that is a number: an integer, a length, a slot of the memo.
  std::int64_t integer() const { return integer_; }
  double real() const { return real_; }
  /// Its text, good until the next opcode is read; of a global the module, and the name.
  std::string_view text() const { return text_; }
  std::string_view name() const { return name_; }

 private:
  const char* bytes(std::size_t count) {
    if (count > static_cast<std::size_t>(end_ - at_)) refill(count);
    at_ += count;
    return at_ - count;
  }
  /// Little-endian, as all numbers of the format but one are.
  template <class T>
  T number() {
    const auto* raw = reinterpret_cast<const std::uint8_t*>(bytes(sizeof(T)));
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) n |= std::uint64_t{raw[i]} << (8 * i);
    return static_cast<T>(n);
  }
  void readText(std::uint64_t length) { text_ = {bytes(length), length}; }
  void readLong(std::uint64_t width);
  void readReal();
  void readGlobal();
  /// Makes `count` bytes of the stream follow at_.
  void refill(std::uint64_t count);

  const char *at_ = nullptr, *end_ = nullptr;
  ByteStream* stream_ = nullptr;
  std::vector<char> window_;
  std::int64_t integer_ = 0;
  double real_ = 0;
  std::string_view text_, name_;
  std::string module_;
};

inline std::uint8_t PickleTokens::next() {
  using namespace pickle_opcodes;
  const auto opcode = number<std::uint8_t>();
  switch (opcode) {
    case proto:
    case binInt1:
    case binPut:
    case binGet: integer_ = number<std::uint8_t>(); break;
    case binInt2: integer_ = number<std::uint16_t>(); break;
    case binInt: integer_ = number<std::int32_t>(); break;
    case longBinPut:
    case longBinGet: integer_ = number<std::uint32_t>(); break;
    case frame: bytes(8); break;
    case long1: readLong(number<std::uint8_t>()); break;
    case long4: readLong(number<std::uint32_t>()); break;
    case binFloat: readReal(); break;
    case shortBinUnicode:
    case shortBinString:
    case shortBinBytes: readText(number<std::uint8_t>()); break;
    case binUnicode:
    case binBytes: readText(number<std::uint32_t>()); break;
    case binUnicode8:
    case binBytes8:
    case byteArray8: readText(number<std::uint64_t>()); break;
    case global: readGlobal(); break;
    default: break;
  }
  return opcode;
}

/// The stack of a pickle's machine with its marks. `Item` is what the machine keeps of a value. Throws Error(badInput)
/// where an opcode takes what is not there; values below the last mark are not.
template <class Item>
class PickleStack {
 public:
  std::size_t size() const { return items_.size(); }
  std::size_t marks() const { return marks_.size(); }

  void push(Item item) { items_.push_back(item); }
  void mark() { marks_.push_back(items_.size()); }
  Item& top() {
    if (items_.empty()) badInput("pickle: its stack runs empty");
    return items_.back();
  }
  Item take() {
    if (items_.empty() || (!marks_.empty() && items_.size() <= marks_.back())) badInput("pickle: its stack runs empty");
    const auto top = items_.back();
    items_.pop_back();
    return top;
  }
  /// What lies above the last mark, which goes; good until the next call.
  std::span<const Item> takeToMark() {
    if (marks_.empty()) badInput("pickle: a mark is missing");
    const auto begin = items_.begin() + marks_.back();
    marks_.pop_back();
    taken_.assign(begin, items_.end());
    items_.erase(begin, items_.end());
    return taken_;
  }

 private:
  std::vector<Item> items_, taken_;
  std::vector<std::size_t> marks_;
};

}  // namespace retrograd
