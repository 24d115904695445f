#include "tests/fuzz/programs/schema.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>
#include <stdexcept>
#include <unordered_map>

namespace retrograd::fuzz {
namespace {

/// "aten.add.Tensor": namespace, name and overload, "default" standing for none.
std::optional<c10::OperatorHandle> find(const std::string& name) {
  const auto first = name.find('.'), last = name.rfind('.');
  if (first == std::string::npos || last == first) return std::nullopt;
  const auto overload = name.substr(last + 1);
  return c10::Dispatcher::singleton().findSchema(
      {name.substr(0, first) + "::" + name.substr(first + 1, last - first - 1), overload == "default" ? "" : overload});
}

}  // namespace

Schema::Schema(const std::string& name) {
  const auto found = find(name);
  if (!found) throw std::runtime_error("LibTorch has no op " + name);
  handle_ = new c10::OperatorHandle(*found);  // kept for good, as the table of schemas is
}

const c10::FunctionSchema& Schema::schema() const { return handle_->schema(); }
bool Schema::keywordOnly(std::size_t i) const { return schema().arguments().at(i).kwarg_only(); }
std::string Schema::argumentName(std::size_t i) const { return schema().arguments().at(i).name(); }
bool Schema::isInplaceView() const { return handle_->hasTag(at::Tag::inplace_view); }
bool Schema::writes(std::size_t i) const {
  const auto* alias = schema().arguments().at(i).alias_info();
  return alias && alias->isWrite();
}

const Schema& schemaOf(const std::string& op) {
  static std::unordered_map<std::string, Schema> known;
  if (const auto it = known.find(op); it != known.end()) return it->second;
  return known.emplace(op, Schema(op)).first->second;
}

bool hasSchema(const std::string& op) { return find(op).has_value(); }

}  // namespace retrograd::fuzz
