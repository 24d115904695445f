#pragma once
#include <functional>
#include <vector>

#include "core/formats/json/json_tree.h"
#include "core/trace/argument.h"

namespace retrograd::recording {

/// Values of a recording as arguments of one call. Tensors become holes, in order.
class ArgumentReader {
 public:
  /// `use`: the value that a tensor's number means now.
  ArgumentReader(std::vector<ValueId>& operands, std::function<ValueId(std::int64_t)> use)
      : operands_(operands), use_(std::move(use)) {}
  Argument read(const Json& value);
  /// Whether an object was met that nobody can make here: a process group, an object of Python.
  bool metUnmakeable() const { return metUnmakeable_; }

 private:
  Argument readTagged(const Json& value);
  Argument unmakeable(std::string text);

  std::vector<ValueId>& operands_;
  std::function<ValueId(std::int64_t)> use_;
  bool metUnmakeable_ = false;
};

/// "strided", "sparse_coo", ...; nullopt for one that we have no name for.
std::optional<Layout> layoutNamed(std::string_view name);
/// A number as JSON has it, or {"float": "nan"}.
double realOf(const Json& value);

}  // namespace retrograd::recording
