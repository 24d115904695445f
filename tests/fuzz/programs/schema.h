#pragma once
#include <string>

namespace c10 {
class OperatorHandle;
struct FunctionSchema;
}  // namespace c10

namespace retrograd::fuzz {

/// An op of LibTorch's dispatcher, found once and kept.
class Schema {
 public:
  explicit Schema(const std::string& name);
  bool keywordOnly(std::size_t i) const;
  std::string argumentName(std::size_t i) const;
  const c10::OperatorHandle& handle() const { return *handle_; }
  const c10::FunctionSchema& schema() const;
  /// Whether the op writes to this argument, as its schema says.
  bool writes(std::size_t i) const;
  /// Whether it changes sizes and strides of its operand in place.
  bool isInplaceView() const;

 private:
  const c10::OperatorHandle* handle_;
};

/// Throws std::runtime_error for an op that LibTorch does not have: a mistake in the table of ops.
const Schema& schemaOf(const std::string& op);
bool hasSchema(const std::string& op);

}  // namespace retrograd::fuzz
