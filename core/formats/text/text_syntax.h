#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/text/text_tokens.h"

namespace retrograd::text {

/// What stands for a value: a name or dotted path, a literal, a list, a call, arithmetic of sizes. Texts are parts of the text that was parsed: a large
/// trace has millions of them.
struct Expression {
  enum class Kind : std::uint8_t { name, integer, real, string, list, tuple, call, negative, binary };
  Kind kind = Kind::tuple;
  Place place;
  std::string_view text;  ///< name or path; operator of a binary one; a string as written, whose content is unquoted() of it
  std::int64_t integer = 0;
  double real = 0;
  std::vector<Expression> items;           ///< elements, arguments, operands; a call's first is what is called
  std::vector<std::string_view> keywords;  ///< names of a call's last arguments
  std::string_view source;                 ///< as written

  bool isName(std::string_view name) const { return kind == Kind::name && text == name; }
};

struct Function;

struct Statement {
  enum class Kind : std::uint8_t { op, del, result, function, comment };
  Kind kind = Kind::comment;
  Place place;
  std::vector<Expression> targets;  ///< op: left of the "=", one expression or none
  Expression value;                 ///< op: the call; result: a tuple of what stands behind "return"
  std::unique_ptr<Function> function;
  Comment comment;
};

struct Parameter {
  std::string_view name;
  Place place;
};

/// A trace, or the body of a higher-order op. The last statement that is no comment is a result.
struct Function {
  std::string name;
  Place place;
  std::vector<Comment> before;  ///< comments since the function before
  std::vector<Parameter> parameters;
  std::vector<Statement> body;
};

/// The functions of a text; imports are skipped. Throws Error(badInput) at the first thing that is not as docs/text-form.md says, and for
/// nesting deeper than 64 brackets or 32 functions.
std::vector<Function> parse(const Source& source, const Progress& progress);

/// Literals alone, as they stand in comments ("value 3").
Expression parseLiteral(const Source& source, std::string_view text, Place place);

}  // namespace retrograd::text
