#include "core/torch/together/data_flow.h"

#include <algorithm>
#include <span>

#include "core/formats/recording/recording.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// Memory that an op writes: of its results and of operands; of a collective also what it fills.
template <class Visit>
void forEachWritten(const RankStep& step, BoundSymbolId op, const Collective* collective, const Visit& visit) {
  const auto& document = step.document();
  const auto& recorded = step.recording().op(op);
  for (const auto& check : std::span(step.recording().checks).subspan(recorded.checksBegin, recorded.checkCount))
    if (check.value && document.isTensor(check.value)) visit(document.value(check.value).storage);
  for (const auto output : document.outputs(op))
    if (output && document.isTensor(output)) visit(document.value(output).storage);
  for (const auto written : writtenOperands(document, op)) visit(document.value(written).storage);
  if (collective)
    for (const auto result : collective->results) visit(document.value(result).storage);
}

std::unordered_map<std::int32_t, std::size_t> byOp(const RankStep& step) {
  std::unordered_map<std::int32_t, std::size_t> found;
  for (std::size_t i = 0; i < step.collectives.size(); ++i) found.emplace(step.collectives[i].op.index, i);
  return found;
}

bool isOpaqueWrite(const Document& document, BoundSymbolId op) {
  return document.symbol(op).name.starts_with("recorded.fsdp.");
}

}  // namespace

DataFlow::DataFlow(const RankStep& step) : mixed_(step.analysis->joint.ops.size(), 0) {
  const auto& document = step.document();
  const auto& recording = step.recording();
  std::unordered_set<StorageId> weights;
  for (const auto& name : recording.names)
    if (name.role != "gradient") weights.insert(name.storage);
  for (const auto& shard : recording.shards)
    if (shard.role != "gradient") weights.insert(shard.storage);
  std::unordered_map<StorageId, char> marks;
  for (const auto input : step.analysis->joint.inputs)
    if (const auto storage = document.value(input).storage; storage && !weights.contains(storage)) {
      const bool isNamed =
          std::ranges::any_of(recording.names, [&](const auto& one) { return one.storage == storage; });
      if (!isNamed) marks[storage] = ofData;
    }
  const auto collectives = byOp(step);
  std::vector<std::size_t> candidates;
  bool reachesLoss = false;
  const auto& ops = step.analysis->joint.ops;
  for (std::size_t position = 0; position < ops.size(); ++position) {
    const auto op = ops[position];
    const auto found = collectives.find(op.index);
    const auto* collective = found == collectives.end() ? nullptr : &step.collectives[found->second];
    char mark = 0;
    auto read = document.operands(op);
    if (recording.op(op).accumulates && read.size() > 1 && document.symbol(op).name.starts_with("aten.add"))
      read = read.subspan(1);  // what comes in, not what is there
    for (const auto operand : read)
      if (operand && document.isTensor(operand))
        if (const auto known = marks.find(document.value(operand).storage); known != marks.end()) mark |= known->second;
    if (collective) {
      char given = 0;
      for (const auto one : collective->given)
        if (const auto known = marks.find(document.value(one).storage); known != marks.end()) given |= known->second;
      const bool isFloat =
          !collective->given.empty() && isDifferentiable(document.meta(collective->given.front()).dtype);
      mark = (given & ofData) && isFloat ? given | ofRanks : given;
      const auto phase = recording.op(op).phase;
      if ((mark & ofRanks) && (phase == Phase::forward || phase == Phase::loss)) candidates.push_back(found->second);
    } else if (isOpaqueWrite(document, op) && recording.op(op).phase != Phase::optimizer) {
      // The gathering of parameters fills memory anew; what was in it before does not count.
      mark = 0;
      for (const auto operand : document.operands(op)) {
        const auto storage = operand ? document.value(operand).storage : StorageId();
        if (storage && document.symbol(op).name.find("chunk_cat") != std::string::npos)
          if (const auto known = marks.find(storage); known != marks.end()) mark |= known->second;
      }
    }
    mixed_[position] = (mark & ofRanks) != 0;
    forEachWritten(step, op, collective, [&](StorageId storage) {
      if (storage && !weights.contains(storage)) {
        auto& known = marks[storage];
        known = collective || isOpaqueWrite(document, op) ? mark : static_cast<char>(known | mark);
      }
    });
    for (const auto output : document.outputs(op))
      if (output && std::ranges::find(recording.losses, output) != recording.losses.end())
        reachesLoss |= (marks[document.value(output).storage] & ofRanks) != 0;
  }
  if (reachesLoss) mixing_ = std::move(candidates);
}

std::vector<std::size_t> collectivesBetween(const RankStep& step, ValueId from, std::size_t begin, std::size_t end) {
  const auto& document = step.document();
  const auto collectives = byOp(step);
  std::unordered_set<StorageId> reached{document.value(from).storage};
  std::vector<std::size_t> found;
  const auto& ops = step.analysis->joint.ops;
  for (auto position = begin; position < std::min(end, ops.size()); ++position) {
    const auto op = ops[position];
    const auto at = collectives.find(op.index);
    const auto* collective = at == collectives.end() ? nullptr : &step.collectives[at->second];
    const auto isReached = [&](ValueId value) {
      return value && document.isTensor(value) && reached.contains(document.value(value).storage);
    };
    const bool reads = collective ? std::ranges::any_of(collective->given, isReached)
                                  : std::ranges::any_of(document.operands(op), isReached);
    if (!reads) continue;
    if (collective) found.push_back(at->second);
    forEachWritten(step, op, collective, [&](StorageId storage) {
      if (storage) reached.insert(storage);
    });
  }
  return found;
}

}  // namespace retrograd
