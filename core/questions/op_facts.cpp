#include "core/questions/op_facts.h"

#include <algorithm>
#include <set>

#include "core/trace/implied.h"

namespace retrograd {

OpFacts::OpFacts(const Analysis& analysis) : analysis_(analysis), document_(*analysis.document) {
  saved_.assign(document_.valueCount(), false);
  for (auto value : std::span(analysis.backward.inputs).first(analysis.backward.savedCount))
    if (value) saved_[value] = true;
  positions_.assign(document_.boundSymbolCount(), -1);
  for (std::size_t i = 0; i < analysis.joint.ops.size(); ++i)
    positions_[analysis.joint.ops[i]] = static_cast<std::int32_t>(i);
}

std::string_view OpFacts::module(BoundSymbolId op) const {
  const auto& bound = document_.boundSymbol(op);
  const auto& from = bound.origin.op ? document_.boundSymbol(bound.origin.op) : bound;
  return document_.text(bound.module ? bound.module : from.module);
}

bool OpFacts::savesOutput(BoundSymbolId op) const {
  const auto outputs = document_.outputs(op);
  return std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) { return isSaved(v); });
}

std::int64_t OpFacts::newBytes(BoundSymbolId op) const {
  std::set<StorageId> known;
  for (auto operand : document_.operands(op))
    if (operand) known.insert(document_.value(operand).storage);
  std::int64_t bytes = 0;
  for (auto output : document_.outputs(op)) {
    if (!output || !document_.value(output).storage || !known.insert(document_.value(output).storage).second) continue;
    bytes += document_.storage(output).bytes;
  }
  return bytes;
}

std::optional<std::size_t> OpFacts::position(BoundSymbolId op) const {
  const auto position = positions_[op];
  return position < 0 ? std::nullopt : std::optional<std::size_t>(position);
}

BoundSymbolId OpFacts::forwardOf(BoundSymbolId op) const {
  const auto role = document_.boundSymbol(op).origin.role;
  if (role == Role::none || role == Role::forward) return {};
  return analysis_.links.forwardOf(document_, op);
}

std::vector<BoundSymbolId> OpFacts::backwardOf(BoundSymbolId op) const {
  std::vector<BoundSymbolId> found;
  const auto role = document_.boundSymbol(op).origin.role;
  if (role != Role::none && role != Role::forward) return found;
  for (auto derived : analysis_.links.derived(OriginLinks::origin(document_, op)))
    if (document_.boundSymbol(derived).origin.role != Role::forward) found.push_back(derived);
  return found;
}

std::string_view OpFacts::role(BoundSymbolId op) const {
  const auto role = document_.boundSymbol(op).origin.role;
  return role == Role::none ? "computation" : name(role);
}

std::string shortType(const Document& document, ValueId value) {
  if (!value) return "None";
  if (!document.isTensor(value)) return "number";
  auto text = typeComment(document.meta(value));
  if (constexpr std::string_view usual = "cpu "; text.starts_with(usual)) text.erase(0, usual.size());
  return text;
}

}  // namespace retrograd
