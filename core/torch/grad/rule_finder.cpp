#include "core/torch/grad/rule_finder.h"

#include <optional>

#include "core/torch/tracing/recorder.h"
#include "core/trace/op_traits.h"

namespace retrograd {
at::Tensor RuleFinder::real(ValueId value) {
  if (!options_.realValues) throw Error(ErrorCode::needsData, "its result depends on data, and no inputs are at hand");
  return options_.realValues->value(emitted_, value);
}

/// Derives with real operands: first on hollow tensors that ask for data where they must, then, where the op reads data
/// otherwise or makes sparse tensors, on the real tensors throughout.
std::unique_ptr<Rule> RuleFinder::deriveWithData(RuleRequest request, std::span<const ValueId> tensors, bool runReal) {
  bool sparse = runReal;
  for (auto tensor : tensors) {
    request.real.push_back(real(tensor));
    sparse |= document_.meta(tensor).layout != Layout::strided;
  }
  if (!sparse) {
    try {
      return deriveRule(document_, request);
    } catch (const NeedsData&) {
    } catch (const Error&) {
    }
  }
  request.runReal = true;
  return deriveRule(document_, request);
}

RuleRequest RuleFinder::request(const std::string& symbol, const CallPattern& pattern, std::span<const ValueId> tensors,
                                WriteMode writes, const RegionState& region) const {
  RuleRequest request{.op = symbol, .pattern = &pattern};
  for (auto tensor : tensors) {
    request.operands.push_back(document_.value(tensor).meta);
    request.requiresGrad.push_back(document_.value(tensor).requiresGrad);
    if (hasTrait(symbol, OpTrait::readsMemory)) request.memoryBytes.push_back(document_.storage(tensor).bytes);
  }
  request.gradMode = region.gradMode;
  request.writes = writes;
  request.autocast = region.autocast;
  request.rules = options_.rules;
  request.createGraph = options_.createGraph;
  return request;
}

RuleFinder::Found RuleFinder::find(SymbolId symbol, PatternId pattern, std::span<const ValueId> tensors,
                                   WriteMode writes) {
  auto& key = keyScratch_;
  key.assign({symbol.index, pattern.index, static_cast<std::int32_t>(writes) * 2 + region_.gradMode, autocastIndex()});
  bool strided = true;
  for (auto tensor : tensors) {
    const auto& value = document_.value(tensor);
    key.push_back(value.meta.index * 2 + (value.requiresGrad ? 1 : 0));
    strided &= document_.meta(value.meta).layout == Layout::strided;
    if (!hasTrait(document_.symbol(symbol).name, OpTrait::readsMemory) || !value.storage) continue;
    const auto bytes = document_.storage(value.storage).bytes;
    key.insert(key.end(), {static_cast<std::int32_t>(bytes >> 31), static_cast<std::int32_t>(bytes & 0x7fffffff)});
  }
  if (auto* rule = cache_.find(key)) return {rule, false};
  // Copies: deriving interns symbols and patterns, which moves the tables.
  const std::string name = document_.symbol(symbol).name;
  const CallPattern calls = document_.pattern(pattern);
  const auto derivation = request(name, calls, tensors, writes);
  std::optional<Error> refusal;
  if (strided) {
    try {
      const auto cacheKey = key;
      return {cache_.insert(cacheKey, deriveRule(document_, derivation)), false};
    } catch (const NeedsData&) {
    } catch (const Error& e) {
      refusal = e;
    }
  }
  if (refusal && !options_.realValues) throw *refusal;
  std::unique_ptr<Rule> rule;
  try {
    rule = deriveWithData(derivation, tensors);
  } catch (const NeedsData& e) {
    throw Error(ErrorCode::needsData, e.what(), "torch.ops." + name);
  } catch (const Error& e) {
    throw refusal ? *refusal : e;
  }
  for (const auto& op : rule->dataDependent) dataDependent_.push_back(op);
  return {cache_.keep(std::move(rule)), true};
}

std::int32_t RuleFinder::autocastIndex() {
  if (!region_.autocast.active) return 0;
  for (std::size_t i = 0; i < autocasts_.size(); ++i)
    if (autocasts_[i] == region_.autocast) return static_cast<std::int32_t>(i) + 1;
  autocasts_.push_back(region_.autocast);
  return static_cast<std::int32_t>(autocasts_.size());
}

/// Shapes alone first; then with real operands and cotangents where the formula asks for data; then on real tensors
/// throughout, where it reads data without asking or makes a sparse gradient.
const BackwardVariant& RuleFinder::backward(Instance& instance, std::span<const ValueId> operands,
                                            const std::vector<MetaId>& metas, const std::vector<ValueId>& cotangents) {
  std::optional<Error> refusal;
  if (!instance.withData) {
    try {
      return backwardVariant(document_, *instance.rule, metas);
    } catch (const NeedsData&) {
      refusal = Error(ErrorCode::needsData, "its derivative reads data, and no inputs are at hand",
                      document_.symbol(instance.symbol).name);
    } catch (const Error& e) {
      refusal = e;
    }
    if (!options_.realValues) throw *refusal;
  }
  for (const bool runReal : {false, true}) {
    try {
      return backwardWithData(instance, operands, metas, cotangents, runReal);
    } catch (const NeedsData& e) {
      if (runReal) throw Error(ErrorCode::needsData, e.what(), document_.symbol(instance.symbol).name);
    } catch (const Error& e) {
      if (!runReal) continue;
      if (refusal) throw *refusal;
      throw;
    }
  }
  throw Error(ErrorCode::internal, "unreachable");
}

const BackwardVariant& RuleFinder::backwardWithData(Instance& instance, std::span<const ValueId> operands,
                                                    const std::vector<MetaId>& metas,
                                                    const std::vector<ValueId>& cotangents, bool runReal) {
  if (!instance.withData || runReal) {
    // The rule once more with real operands; its locals come out the same, as the op runs the same way.
    const std::string name = document_.symbol(instance.symbol).name;
    const CallPattern calls = document_.pattern(instance.pattern);
    RegionState recorded = region_;
    recorded.gradMode = true;
    if (instance.autocast > 0) recorded.autocast = autocasts_[instance.autocast - 1];
    auto rule = deriveWithData(request(name, calls, operands, instance.writes, recorded), operands, runReal);
    if (rule->locals.size() != instance.rule->locals.size())
      throw Error(ErrorCode::internal, "it traces differently with data", name);
    instance.rule = cache_.keep(std::move(rule));
    if (!instance.withData) dataDependent_.push_back(name + " (backward)");
    instance.withData = true;
  }
  std::vector<at::Tensor> values;
  for (auto cotangent : cotangents) values.push_back(cotangent ? real(cotangent) : at::Tensor());
  return backwardVariant(document_, *instance.rule, metas, values);
}

}  // namespace retrograd
