#pragma once
#include <string>

#include "core/trace/document.h"

namespace retrograd {

/// Writes a bound symbol as a line of Python: `t6 = torch.ops.aten.mm.default(t1, t5)`. What values, literals and names
/// look like can be changed, so that an export makes links of them, or numbers of expressions.
class CallText {
 public:
  explicit CallText(const Document& document) : document_(document) {}
  virtual ~CallText() = default;

  std::string call(BoundSymbolId op) const;
  /// Left of the "=": one name, or a tuple in which list returns are in brackets. A result that is not made is "_".
  virtual std::string targets(BoundSymbolId op) const;
  /// An argument in Python notation, holes filled with the operands.
  std::string argument(const Argument& argument, std::span<const ValueId> operands) const;

 protected:
  const Document& document() const { return document_; }
  /// A value that is read; one that the op makes.
  virtual std::string value(ValueId id) const { return document_.displayName(id); }
  virtual std::string made(ValueId id) const { return value(id); }
  /// An argument that is neither a value nor a list.
  virtual std::string literal(const Argument& argument) const;
  /// The op's name, the name of a keyword.
  virtual std::string name(std::string_view text) const { return std::string(text); }
  /// An argument of the call itself, where its position matters.
  virtual std::string whole(const Argument& argument, std::span<const ValueId> operands) const {
    return this->argument(argument, operands);
  }

 private:
  const Document& document_;
};

}  // namespace retrograd
