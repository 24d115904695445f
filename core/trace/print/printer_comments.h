#pragma once
// What is behind the '#' of a printed trace; only the printer's own files include this.
#include <string>
#include <unordered_map>
#include <vector>

#include "core/trace/trace.h"

namespace retrograd {

/// Writes comments of one trace in the order of its lines; remembers which storages were met. Whatever follows from the
/// call and its operands (trace/implied.h) is left out.
class CommentWriter {
 public:
  explicit CommentWriter(const Document& document) : document_(document) {}

  /// `t6: "cpu f32[10, 10]", forward: t0: "torch.ops.aten.linear.default", gradient of x`
  std::string op(BoundSymbolId op);
  /// `p_l1_weight: "cpu f32[16, 8]", parameter l1.weight`: what flows into a trace or a body, where values are of kind
  /// `usual` unless something else is said. `role` is what it is to this trace ("cotangent", "saved for backward");
  /// `spec` and `number` are what the computation knows of it.
  std::string input(ValueId value, ValueKind usual, std::string_view role = {}, const InputSpec* spec = nullptr,
                    const Argument* number = nullptr);
  /// The same for an input of a body; `passed` is the operand that represents it, where there is one.
  std::string bodyInput(ValueId value, ValueId passed);

 private:
  std::string typed(ValueId value, const InputSpec* spec = nullptr) const;
  std::string numberText(ValueId value) const;
  void addStorage(std::vector<std::string>& parts, ValueId value, ValueId base);
  void addOutput(std::vector<std::string>& parts, BoundSymbolId op, std::size_t output);
  void addOrigin(std::vector<std::string>& parts, BoundSymbolId op) const;
  void addGradient(std::vector<std::string>& parts, const Origin& origin) const;
  void addState(std::vector<std::string>& parts, BoundSymbolId op) const;
  std::string accumulation(BoundSymbolId op) const;
  /// `t0: "torch.ops.aten.linear.default"`, or, where the origin is a graph input, `w: "parameter"`.
  std::string originText(const Origin& origin) const;

  const Document& document_;
  std::unordered_map<StorageId, ValueId> shown_;
};

/// "cpu f32[2, 3]", and behind it what is not as usual: " strides [1, 2] offset 4 conj".
std::string typeText(const TensorMeta& meta);

}  // namespace retrograd
