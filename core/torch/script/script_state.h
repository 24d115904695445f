#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/byte_size.h"
#include "core/base/number_text.h"
#include "core/questions/why.h"
#include "core/stepping/steps.h"
#include "core/torch/script/script.h"

namespace retrograd {

struct RecordedMemory;

/// A command's words after its name.
struct Words {
  std::vector<std::string> all;
  std::string rest;  ///< the same as they are in the line

  std::string at(std::size_t i, const char* expected) const {
    if (i >= all.size()) throw Error(ErrorCode::badUse, std::string("expected ") + expected);
    return all[i];
  }
  double number(std::size_t i, const char* expected) const {
    const auto text = at(i, expected);
    if (const auto value = numberIn<double>(text)) return *value;
    throw Error(ErrorCode::badUse, "'" + text + "' is not a number");
  }
  /// Throws Error(badUse) for a fraction, a negative number and one beyond 64 bits.
  std::int64_t whole(std::size_t i, const char* expected) const {
    const auto text = at(i, expected);
    if (const auto value = wholeNumber(text)) return *value;
    throw Error(ErrorCode::badUse,
                "'" + text + "' is not " + expected + ": expected a whole number from 0 to 9223372036854775807");
  }
  /// A size such as 100K. Throws Error(badUse) for anything else.
  std::int64_t bytes(std::size_t i) const {
    const auto text = at(i, byteSizeForms);
    if (const auto value = byteSizeIn(text)) return *value;
    throw Error(ErrorCode::badUse, "'" + text + "' is not a size: expected " + byteSizeForms);
  }
  std::size_t count(std::size_t i) const { return i < all.size() ? whole(i, "a count") : 1; }
};

/// A value as words name it: `t12`, `grad W`, `W[0, :4]`.
struct NamedValue {
  ValueId value;
  std::string slice;  ///< empty: all of it
};

/// What the commands work on, and what their answers have in common.
struct ScriptState {
  using Json = nlohmann::ordered_json;

  std::shared_ptr<const Analysis> analysis;
  const Document& document;
  Session session;
  Steps steps;
  std::vector<Breakpoint> breakpoints;
  std::vector<ValueId> watches;
  std::shared_ptr<const RecordedMemory> recorded;  ///< the snapshot that was asked about last

  ScriptState(const std::shared_ptr<const Analysis>& a, SessionOptions options)
      : analysis(a), document(*a->document), session(a, options), steps(a) {}

  // Answers.
  std::string opText(BoundSymbolId op) const;
  /// "module blocks.0, model.py:31: y = torch.log(x)"; what is not known is left out.
  std::string placeText(BoundSymbolId op) const;
  Json opJson(BoundSymbolId op) const;
  std::string valueName(ValueId value) const;
  /// What follows "W has no gradient": the first place at which it is cut off, with its line.
  std::string noGradientText(const WhyNoGradient& why) const;
  /// Where the run is, and what the watched values are.
  CommandAnswer where(StopReason reason) const;
  /// Adds the op whose output met the condition of a breakpoint, and the output: a run stops right after it.
  void addCulprit(CommandAnswer& answer, const Breakpoint& breakpoint) const;
  /// Type and statistics of a value, or why it is not there.
  CommandAnswer summary(ValueId value) const;

  // What words stand for. All throw Error(badUse) that says what was expected or is not there.
  ValueId value(const Words& words, std::size_t i = 0) const;
  /// The gradient of a value where the words ask for it: `grad W`.
  ValueId valueOrGradient(const Words& words) const;
  /// The same with a slice, from a text of any spacing.
  NamedValue namedValue(const std::string& text) const;
  BoundSymbolId op(const Words& words) const;
};

/// One command of the debugger. `usage` begins with its name, `help` with what it does.
struct ScriptCommand {
  using Handler = std::function<CommandAnswer(ScriptState&, const Words&, const Progress&)>;
  std::string usage, help;
  Handler run;
  std::vector<std::string> otherNames = {};

  std::string name() const { return usage.substr(0, usage.find(' ')); }
};

/// Moving, breakpoints; values; memory; questions that explain; those that measure; notes.
std::vector<ScriptCommand> runCommands();
std::vector<ScriptCommand> valueCommands();
std::vector<ScriptCommand> memoryCommands();
std::vector<ScriptCommand> questionCommands();
std::vector<ScriptCommand> checkCommands();
std::vector<ScriptCommand> noteCommands();

}  // namespace retrograd
