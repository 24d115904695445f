#include "core/formats/pickle/pickle.h"

#include <unordered_map>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/pickle/pickle_tensors.h"
#include "core/formats/pickle/pickle_tokens.h"

namespace retrograd {
namespace {

constexpr std::size_t maxStack = 500'000;

using namespace pickle_opcodes;

/// The stack machine; values live in the Pickle, the stack and memo hold their indices.
class Machine {
 public:
  Machine(std::string_view code, PickleTensors tensors, const PickleRecord& record)
      : tokens_(code), tensors_(std::move(tensors)), maxValues_(record.maxValues), opaque_(record.opaque) {}

  Pickle run() {
    for (;;) {
      const auto opcode = tokens_.next();
      if (opcode == stop) break;
      step(opcode);
      if (stack_.size() > maxStack || memo_.size() > maxValues_) badInput("pickle: too many values");
    }
    pickle_.root = take();
    return std::move(pickle_);
  }

 private:
  using Kind = PickleValue::Kind;

  PickleValue& fresh(Kind kind) {
    if (pickle_.values.size() >= maxValues_) badInput("pickle: too many values");
    auto& value = pickle_.values.emplace_back();
    if (opaque_) chargeReading(sizeof(PickleValue));
    value.kind = kind;
    stack_.push(static_cast<std::uint32_t>(pickle_.values.size()) - 1);
    return value;
  }
  std::uint32_t take() { return stack_.take(); }
  std::vector<std::uint32_t> takeToMark() {
    const auto items = stack_.takeToMark();
    return {items.begin(), items.end()};
  }
  PickleValue& top(Kind kind) {
    auto& value = pickle_.values[stack_.top()];
    if (value.kind != kind && !(opaque_ && value.kind == Kind::object))
      badInput("pickle: an opcode meets a value of another kind");
    return value;
  }
  void extend(Kind kind, const std::vector<std::uint32_t>& items) {
    if (kind == Kind::dict && items.size() % 2 != 0) badInput("pickle: a key without a value");
    auto& container = top(kind);
    if (container.kind == Kind::object) return;  // a class that is a container: what it holds stays unknown
    auto& target = container.items;
    grown_ += items.size();
    if (grown_ > maxValues_) badInput("pickle: too many values");
    target.insert(target.end(), items.begin(), items.end());
  }

  void step(std::uint8_t opcode);
  bool stepPlain(std::uint8_t opcode);
  void pushInteger(std::int64_t n) { fresh(Kind::integer).integer = n; }
  void pushText() { fresh(Kind::string).text = tokens_.text(); }
  void pushTuple(std::size_t count) {
    std::vector<std::uint32_t> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = take();
    fresh(Kind::tuple).items = std::move(items);
  }
  void pushLong() {
    if (!tokens_.text().empty()) badInput("pickle: an integer of more than 64 bits");
    pushInteger(tokens_.integer());
  }
  void remember(std::int64_t slot) { memo_[slot] = stack_.top(); }
  void recall(std::int64_t slot) {
    const auto it = memo_.find(slot);
    if (it == memo_.end()) badInput("pickle: refers to a value that was never stored");
    stack_.push(it->second);
  }
  void pushGlobal(std::string_view module, std::string_view name) {
    auto text = std::string(module) + " " + std::string(name);
    if (!tensors_.isKnownGlobal(text) && !opaque_)
      badInput("pickle: refuses to create a " + std::string(module) + "." + std::string(name));
    fresh(Kind::global).text = std::move(text);
  }
  /// An instance without its state; BUILD gives it that.
  void pushObject() {
    const auto arguments = take(), callee = take();
    if (opaque_) return push(tensors_.opaque(pickle_, callee, arguments));
    if (!tensors_.isClass(pickle_.at(callee)) || !pickle_.at(arguments).items.empty())
      badInput("pickle: refuses to create an object");
    const auto name = pickle_.at(callee).text;
    fresh(Kind::object).text = PickleTensors::className(name);
  }
  void giveState() {
    const auto state = take();
    if (opaque_) {  // only an object's state is kept: that of a dict or a tensor are attributes next to it
      if (auto& value = pickle_.values[stack_.top()]; value.kind == Kind::object)
        value.items.push_back(state), ++grown_;
      return;
    }
    auto& object = top(Kind::object);
    if (!object.items.empty()) badInput("pickle: an object is given its state twice");
    object.items = {state};
  }
  void applyReduce() {
    const auto arguments = take(), callee = take();
    push(tensors_.call(pickle_, callee, arguments));
  }
  void push(PickleValue value) {
    grown_ += value.items.size();
    if (pickle_.values.size() >= maxValues_ || grown_ > maxValues_) badInput("pickle: too many values");
    if (opaque_) chargeReading(sizeof(PickleValue));
    pickle_.values.push_back(std::move(value));
    stack_.push(static_cast<std::uint32_t>(pickle_.values.size()) - 1);
  }

  PickleTokens tokens_;
  std::size_t grown_ = 0;
  PickleTensors tensors_;
  std::size_t maxValues_;
  bool opaque_;
  Pickle pickle_;
  PickleStack<std::uint32_t> stack_;
  std::unordered_map<std::int64_t, std::uint32_t> memo_;
};

void Machine::step(std::uint8_t opcode) {
  switch (opcode) {
    case proto:
      if (tokens_.integer() > 5) badInput("pickle: unknown protocol");
      return;
    case frame: return;
    case mark:
      stack_.mark();
      if (stack_.marks() > maxStack) badInput("pickle: too many values");
      return;
    case popMark: takeToMark(); return;
    case pop: take(); return;
    case none: fresh(Kind::none); return;
    case newTrue: fresh(Kind::boolean).integer = 1; return;
    case newFalse: fresh(Kind::boolean); return;
    case binInt:
    case binInt1:
    case binInt2: pushInteger(tokens_.integer()); return;
    case long1: pushLong(); return;
    case binFloat: fresh(Kind::real).real = tokens_.real(); return;
    case binUnicode:
    case shortBinUnicode:
    case shortBinString: pushText(); return;
    case emptyTuple: fresh(Kind::tuple); return;
    case tuple: {
      auto items = takeToMark();
      fresh(Kind::tuple).items = std::move(items);
      return;
    }
    case tuple1: pushTuple(1); return;
    case tuple2: pushTuple(2); return;
    case tuple3: pushTuple(3); return;
    case emptyList: fresh(Kind::list); return;
    case append: extend(Kind::list, {take()}); return;
    case appends: extend(Kind::list, takeToMark()); return;
    case emptyDict: fresh(Kind::dict); return;
    case setItem: {
      const auto value = take(), key = take();
      extend(Kind::dict, {key, value});
      return;
    }
    case setItems: extend(Kind::dict, takeToMark()); return;
    case global: pushGlobal(tokens_.text(), tokens_.name()); return;
    case stackGlobal: {
      const auto name = take(), module = take();
      pushGlobal(pickle_.at(module).text, pickle_.at(name).text);
      return;
    }
    case reduce: applyReduce(); return;
    case newObject: pushObject(); return;
    case build: giveState(); return;
    case persistent: push(tensors_.storage(pickle_, take())); return;
    case binPut:
    case longBinPut: remember(tokens_.integer()); return;
    case memoize: remember(std::ssize(memo_)); return;
    case binGet:
    case longBinGet: recall(tokens_.integer()); return;
    default:
      if (opaque_ && stepPlain(opcode)) return;
      badInput("pickle: opcode " + std::to_string(opcode) + " is not one that tensors and plain values need");
  }
}

/// Bytes, sets and long texts, which occur in what lies next to the tensors. False for an opcode that is none of these.
bool Machine::stepPlain(std::uint8_t opcode) {
  switch (opcode) {
    case shortBinBytes:
    case binBytes:
    case binBytes8:
    case byteArray8:
    case binUnicode8: pushText(); return true;
    case long4: fresh(Kind::none); return true;  // beyond 64 bits: not a number that is needed here
    case emptySet: fresh(Kind::list); return true;
    case addItems: extend(Kind::list, takeToMark()); return true;
    case frozenSet: {
      auto items = takeToMark();
      fresh(Kind::list).items = std::move(items);
      return true;
    }
    case newObjectWithKeywords: {
      take();
      const auto arguments = take(), callee = take();
      push(tensors_.opaque(pickle_, callee, arguments));
      return true;
    }
    default: return false;
  }
}

void collectLeaves(const Pickle& pickle, std::uint32_t index, int depth, std::vector<std::uint32_t>& leaves,
                   std::size_t& visited) {
  constexpr int maxDepth = 100;
  constexpr std::size_t maxVisits = 1'000'000;
  if (depth > maxDepth) badInput("values nested deeper than 100 levels");
  if (++visited > maxVisits) badInput("more than a million values");
  const auto& value = pickle.at(index);
  switch (value.kind) {
    case PickleValue::Kind::tuple:
    case PickleValue::Kind::list:
      for (const auto item : value.items) collectLeaves(pickle, item, depth + 1, leaves, visited);
      return;
    case PickleValue::Kind::dict:
      for (std::size_t i = 1; i < value.items.size(); i += 2)
        collectLeaves(pickle, value.items[i], depth + 1, leaves, visited);
      return;
    default: leaves.push_back(index);
  }
}

}  // namespace

Pickle readPickle(const std::shared_ptr<const Archive>& archive, const PickleRecord& record) {
  const auto code = archive->read(record.name);
  try {
    return Machine(code.text(), PickleTensors(archive, record), record).run();
  } catch (const Error& e) {
    throw e.at(record.name);
  }
}

Pickle readPickle(std::string_view code, const PickleRecord& record) {
  return Machine(code, PickleTensors(nullptr, record), record).run();
}

std::vector<std::uint32_t> leavesOf(const Pickle& pickle, std::uint32_t from) {
  std::vector<std::uint32_t> leaves;
  std::size_t visited = 0;
  collectLeaves(pickle, from, 0, leaves, visited);
  return leaves;
}

}  // namespace retrograd
