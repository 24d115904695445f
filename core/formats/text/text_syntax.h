#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/text/text_cursor.h"

namespace retrograd::text {

struct Function;

struct Statement {
  enum class Kind : std::uint8_t { op, del, result, function, comment };
  Kind kind = Kind::comment;
  Place place;
  std::vector<Expression> targets;  ///< op: left of the "=", one expression or none
  Expression value;                 ///< op: the call; result: a tuple of what is behind "return"
  std::shared_ptr<const Function> function;
  Comment comment;
};

struct Parameter {
  std::string_view name;
  Place place;
};

/// A trace, or the body of a higher-order op.
struct Function {
  std::string name;
  Place place;
  std::vector<Comment> before;  ///< comments since the function before
  std::vector<Parameter> parameters;
  std::vector<Comment> head;    ///< comments between the signature and the first statement
  std::vector<Statement> body;  ///< of a function inside another one; the last is a result
};

class Parser;

/// Reads a text function by function and these statement by statement, as a large trace has more of them than should be
/// in memory at once. Imports are skipped. Throws Error(badInput) at the first thing that is not as docs/text-form.md
/// says, and for expressions that nest too deeply or more than 32 functions in one another.
class FunctionReader {
 public:
  FunctionReader(const Source& source, const Progress& progress);
  ~FunctionReader();
  /// The next function of the text, without its body; nothing at the end. Unread parts of the one before are read,
  /// and dropped.
  std::optional<Function> next();
  /// The next statement of its body, of which the last is a result; not to be asked for more.
  Statement statement();

 private:
  std::unique_ptr<Parser> parser_;
};

/// An expression that goes on to the end of a comment ("value 3"), from `place` on.
Expression readRemark(const Source& source, const Place& place, std::size_t size);

}  // namespace retrograd::text
