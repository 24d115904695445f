#pragma once
// The command line parser as subcommands see it. It is CLI11, whose templates cost seconds in each unit that sees them,
// so few units include it.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace retrograd::cli {

/// A handle to an option or positional argument of a Parser, which owns it. Methods that change it return the same
/// handle, so that calls can be chained; constness is that of the handle.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  /// A command line without it is refused.
  Option required() const;
  /// It and `other` cannot be given together. By name: that of an option of the same parser, which must have been added
  /// before.
  Option excludes(Option other) const;
  Option excludes(const std::string& name) const;
  /// It is refused unless `other` is given too.
  Option needs(Option other) const;

  /// Its values are these alone; help and completions list them.
  Option oneOf(const std::vector<std::string>& values) const;
  /// A number from `least` to `most`, both included.
  Option range(int least, int most) const;
  Option range(double least, double most) const;
  /// A number above 0, and one that is 0 or more.
  Option aboveZero() const;
  Option zeroOrMore() const;
  /// A whole number from 0 to 2^64 - 1; refuses -1, which would otherwise count from the other end.
  Option seed() const;

  /// Of a list: each occurrence of the option takes one value. Else it takes all values up to the next option.
  Option repeatable() const;
  /// Of a list: a value is several, separated by commas.
  Option commaSeparated() const;
  /// The value may be left out, and is the empty text then.
  Option optionalValue() const;

  /// Help shows the variable's present value, or `text`, as the default.
  Option showDefault() const;
  Option showDefault(const std::string& text) const;
  /// What help calls a value, instead of TEXT, INT or the like.
  Option typeName(const std::string& name) const;
  /// The heading that help lists it under.
  Option group(const std::string& name) const;
  /// Still read, but in no help, completion or manual page: a name from before.
  Option hidden() const;

  /// After parsing: whether the command line has it, and the values as they were written.
  bool given() const;
  const std::vector<std::string>& values() const;

  auto operator<=>(const Option&) const = default;

 private:
  CLI::Option* option_;
};

/// A handle to the parser of a subcommand, or of the program itself. Copies refer to the same parser, which outlives
/// every subcommand that runs.
///
/// Names are "-o,--output" for an option and "file" for a positional argument. A variable must live until the command
/// line is parsed; it keeps its value where the command line does not have the option. Text that is not a value of the
/// variable's type is refused with a message.
class Parser {
 public:
  explicit Parser(CLI::App& app) : app_(&app) {}

  /// `Value`: of the types that parser.cpp lists.
  template <class Value>
  Option add(const std::string& names, Value& value, const std::string& help = {}) const;
  /// Calls `read` with the value, or with all values of a list, while the command line is parsed. It may throw Error,
  /// or refuse a value (refuseValue).
  Option add(const std::string& names, const std::string& help,
             const std::function<void(const std::string&)>& read) const;
  Option add(const std::string& names, const std::string& help,
             const std::function<void(const std::vector<std::string>&)>& read) const;
  /// A size in bytes such as 100K or 2 GiB (core/base/byte_size.h).
  Option addSize(const std::string& names, const std::string& help, std::function<void(std::int64_t)> read) const;

  /// An option without a value: sets `value`, or calls `read`.
  Option flag(const std::string& names, bool& value, const std::string& help = {}) const;
  Option flag(const std::string& names, const std::string& help, std::function<void()> read) const;

  /// All options in the order in which they were added, and the one of a name such as "--device", which must exist.
  std::vector<Option> options() const;
  Option option(const std::string& name) const;

  /// The text below the help; a function is called each time it is shown, and its text comes before the other.
  void footer(const std::string& text) const;
  void footer(std::function<std::string()> text) const;
  std::string footer() const;
  /// The subcommand works, but no help, completion or manual page lists it.
  void hide() const;

  std::string name() const;
  /// Adds a subcommand; one of them must then be named, and no more than one.
  Parser addCommand(const std::string& name, const std::string& description) const;
  bool hasCommands() const;
  /// After parsing: the subcommand that the command line names.
  std::optional<Parser> chosen() const;
  /// Of a subcommand: the parser that it was added to.
  Parser parent() const;

  /// The parser itself, for what describes it: help, completions, the manual page.
  CLI::App& app() const { return *app_; }

  auto operator<=>(const Parser&) const = default;

 private:
  CLI::App* app_;
};

/// Ends parsing with a message that names the value, or the option, and says why it is refused: "SUBCOMMAND: VALUE:
/// WHY".
[[noreturn]] void refuseValue(const std::string& value, const std::string& why);

}  // namespace retrograd::cli
