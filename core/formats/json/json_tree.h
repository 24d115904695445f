#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string_view>

#include "core/base/memory_account.h"

namespace retrograd {

struct JsonMember;

/// One value of a parsed JSON text; 16 bytes, lives in the arena of its JsonTree.
class Json {
 public:
  enum class Kind : std::uint8_t { null, boolean, integer, real, string, array, object };

  Json() = default;
  static Json ofBool(bool b) {
    Json j(Kind::boolean);
    j.integer_ = b;
    return j;
  }
  static Json ofInt(std::int64_t i) {
    Json j(Kind::integer);
    j.integer_ = i;
    return j;
  }
  static Json ofReal(double d) {
    Json j(Kind::real);
    j.real_ = d;
    return j;
  }
  static Json ofText(std::string_view text) {
    Json j(Kind::string, text.size());
    j.text_ = text.data();
    return j;
  }
  static Json ofItems(std::span<const Json> items) {
    Json j(Kind::array, items.size());
    j.items_ = items.data();
    return j;
  }
  static Json ofMembers(std::span<const JsonMember> members);

  Kind kind() const { return kind_; }
  bool isNull() const { return kind_ == Kind::null; }
  bool isString() const { return kind_ == Kind::string; }
  bool isObject() const { return kind_ == Kind::object; }
  bool isArray() const { return kind_ == Kind::array; }

  // Each of these throws Error(badInput) saying what was expected when the value is of another kind.
  bool boolean() const;
  std::int64_t integer() const;
  /// A number of either kind, or one of the texts "Infinity", "-Infinity", "NaN" that torch.export writes.
  double number() const;
  std::string_view text() const;
  std::span<const Json> items() const;
  std::span<const JsonMember> members() const;

  /// The first member of that name of an object; null when there is none or this is not an object.
  const Json* find(std::string_view key) const;
  /// The same, but a missing one is an Error(badInput) naming it.
  const Json& at(std::string_view key) const;
  /// The member of that name where it is of the kind that is asked for; else, and where there is none: an empty text,
  /// `otherwise`, false, no items.
  std::string_view textAt(std::string_view key) const;
  std::int64_t integerAt(std::string_view key, std::int64_t otherwise = 0) const;
  bool isTrue(std::string_view key) const;
  std::span<const Json> itemsAt(std::string_view key) const;
  /// The one member of a tagged union such as {"as_int": 3}.
  const JsonMember& only() const;

 private:
  explicit Json(Kind kind, std::size_t size = 0) : kind_(kind), size_(static_cast<std::uint32_t>(size)) {}
  void expect(Kind kind, const char* what) const;

  Kind kind_ = Kind::null;
  std::uint32_t size_ = 0;
  union {
    std::int64_t integer_ = 0;
    double real_;
    const char* text_;
    const Json* items_;
    const JsonMember* members_;
  };
};

struct JsonMember {
  std::string_view key;
  Json value;
};

/// A JSON text as a tree in one arena: no string is allocated on its own and taking it down is free, which matters for
/// graphs of many megabytes. Nesting is limited; numbers beyond int64 become reals.
class JsonTree {
 public:
  static constexpr std::size_t maxDepth = 400;

  /// Throws Error(badInput) with the position of the trouble. Nothing of `text` is referred to afterwards.
  explicit JsonTree(std::string_view text);
  const Json& root() const { return root_; }

 private:
  std::unique_ptr<CountedMemory> memory_;
  std::unique_ptr<std::pmr::monotonic_buffer_resource> arena_;
  Json root_;
};

}  // namespace retrograd
