#include "core/formats/json/json_tree.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/enum_array.h"
#include "core/base/error.h"

namespace retrograd {
namespace {

/// Receives nlohmann's events and lays the values out in the arena. Children wait on one stack until their container
/// ends.
class TreeBuilder {
 public:
  TreeBuilder(std::pmr::memory_resource& arena, std::pmr::memory_resource& memory) : arena_(arena), pending_(&memory) {}
  Json root() const { return pending_.empty() ? Json() : pending_.front().value; }

  bool null() { return add(Json()); }
  bool boolean(bool b) { return add(Json::ofBool(b)); }
  bool number_integer(std::int64_t i) { return add(Json::ofInt(i)); }
  bool number_unsigned(std::uint64_t u) {
    constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return add(u <= limit ? Json::ofInt(static_cast<std::int64_t>(u)) : Json::ofReal(static_cast<double>(u)));
  }
  bool number_float(double d, const std::string&) { return add(Json::ofReal(d)); }
  bool string(std::string& text) { return add(Json::ofText(keep(text))); }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool key(std::string& text) {
    key_ = keep(text);
    return true;
  }
  bool start_object(std::size_t) { return open(); }
  bool start_array(std::size_t) { return open(); }
  bool end_object() {
    return close<JsonMember>([](const JsonMember& m) { return m; }, Json::ofMembers);
  }
  bool end_array() {
    return close<Json>([](const JsonMember& m) { return m.value; }, Json::ofItems);
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& e) {
    // nlohmann's text begins with its own error number; what follows the last colon pair is for people.
    const std::string what = e.what();
    const auto from = what.find("parse error");
    badInput("not valid JSON at byte " + std::to_string(position) + " (" +
             (from == std::string::npos ? what : what.substr(from)) + ")");
  }

 private:
  struct Level {
    std::size_t begin;
    std::string_view key;
  };

  bool add(Json value) {
    if (pending_.size() >= std::numeric_limits<std::uint32_t>::max()) badInput("JSON holds too many values");
    pending_.push_back({key_, value});
    return true;
  }
  bool open() {
    if (levels_.size() >= JsonTree::maxDepth)
      badInput("JSON is nested deeper than " + std::to_string(JsonTree::maxDepth) + " levels");
    levels_.push_back({pending_.size(), key_});
    key_ = {};
    return true;
  }
  template <class Element, class Convert, class Make>
  bool close(Convert convert, Make make) {
    const Level level = levels_.back();
    levels_.pop_back();
    const std::size_t count = pending_.size() - level.begin;
    auto* elements =
        static_cast<Element*>(arena_.allocate(std::max<std::size_t>(count, 1) * sizeof(Element), alignof(Element)));
    for (std::size_t i = 0; i < count; ++i) new (elements + i) Element(convert(pending_[level.begin + i]));
    pending_.resize(level.begin);
    key_ = level.key;
    return add(make(std::span<const Element>(elements, count)));
  }
  std::string_view keep(const std::string& text) {
    if (text.empty()) return "";
    if (text.size() > std::numeric_limits<std::uint32_t>::max()) badInput("JSON holds a text of more than 4 GiB");
    auto* copy = static_cast<char*>(arena_.allocate(text.size(), 1));
    std::copy(text.begin(), text.end(), copy);
    return {copy, text.size()};
  }

  std::pmr::memory_resource& arena_;
  std::pmr::vector<JsonMember> pending_;
  std::vector<Level> levels_;
  std::string_view key_;
};

}  // namespace

Json Json::ofMembers(std::span<const JsonMember> members) {
  Json j(Kind::object, members.size());
  j.members_ = members.data();
  return j;
}

void Json::expect(Kind kind, const char* what) const {
  static constexpr EnumArray<Kind, const char*, 7> names{"null",   "a truth value", "an integer", "a number",
                                                         "a text", "a list",        "an object"};
  if (kind_ != kind) badInput(std::string("expected ") + what + ", found " + names[kind_]);
}

bool Json::boolean() const {
  expect(Kind::boolean, "a truth value");
  return integer_ != 0;
}
std::int64_t Json::integer() const {
  expect(Kind::integer, "an integer");
  return integer_;
}
std::string_view Json::text() const {
  expect(Kind::string, "a text");
  return {text_, size_};
}
std::span<const Json> Json::items() const {
  expect(Kind::array, "a list");
  return {items_, size_};
}
std::span<const JsonMember> Json::members() const {
  expect(Kind::object, "an object");
  return {members_, size_};
}

double Json::number() const {
  if (kind_ == Kind::integer) return static_cast<double>(integer_);
  if (kind_ == Kind::string) {
    if (text() == "Infinity" || text() == "inf") return std::numeric_limits<double>::infinity();
    if (text() == "-Infinity" || text() == "-inf") return -std::numeric_limits<double>::infinity();
    if (text() == "NaN" || text() == "nan") return std::numeric_limits<double>::quiet_NaN();
  }
  expect(Kind::real, "a number");
  return real_;
}

const Json* Json::find(std::string_view key) const {
  if (kind_ != Kind::object) return nullptr;
  for (const auto& member : members())
    if (member.key == key) return &member.value;
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  expect(Kind::object, "an object");
  if (const Json* value = find(key)) return *value;
  badInput("'" + std::string(key) + "' is missing");
}

std::string_view Json::textAt(std::string_view key) const {
  const Json* found = find(key);
  return found && found->isString() ? found->text() : std::string_view();
}

std::int64_t Json::integerAt(std::string_view key, std::int64_t otherwise) const {
  const Json* found = find(key);
  return found && found->kind() == Kind::integer ? found->integer() : otherwise;
}

bool Json::isTrue(std::string_view key) const {
  const Json* found = find(key);
  return found && found->kind() == Kind::boolean && found->boolean();
}

std::span<const Json> Json::itemsAt(std::string_view key) const {
  const Json* found = find(key);
  return found && found->isArray() ? found->items() : std::span<const Json>();
}

const JsonMember& Json::only() const {
  const auto all = members();
  if (all.size() != 1) badInput("expected an object with one member, found " + std::to_string(all.size()));
  return all.front();
}

JsonTree::JsonTree(std::string_view text)
    : memory_(std::make_unique<CountedMemory>()),
      arena_(std::make_unique<std::pmr::monotonic_buffer_resource>(text.size() / 2 + 4096, memory_.get())) {
  TreeBuilder builder(*arena_, *memory_);
  if (!nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder)) badInput("not valid JSON");
  root_ = builder.root();
}

}  // namespace retrograd
