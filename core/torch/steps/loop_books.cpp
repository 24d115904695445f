// What the loop does beside its backwards and updates: writes, work for nothing, modes.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/id_vector.h"
#include "core/formats/recording/recorded_links.h"
#include "core/judge/report.h"
#include "core/torch/session/recorded_hash.h"
#include "core/torch/steps/step_books.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

bool isForward(Phase phase) { return phase == Phase::forward || phase == Phase::loss || phase == Phase::other; }

/// Writes of one parameter outside of optimizers.
class Writes {
 public:
  Writes(const Analysis& analysis, const StepMembers& members)
      : document_(*analysis.document),
        recording_(*analysis.file.recording),
        ops_(analysis.joint.ops),
        members_(members),
        ofGradient_(document_.valueCount(), 0) {}

  std::vector<Claim> claims() {
    for (const auto op : ops_) visit(op);
    return groups_.take();
  }

 private:
  /// What is made of gradients, as an update by hand is.
  bool comesFromGradient(BoundSymbolId op) const {
    return std::ranges::any_of(document_.operands(op), [&](ValueId operand) {
      return operand && (ofGradient_[operand] || !members_.gradientOf(operand).empty());
    });
  }

  void visit(BoundSymbolId op) {
    const auto& recorded = recording_.op(op);
    if (recorded.phase == Phase::backward || recorded.phase == Phase::accumulation ||
        recorded.phase == Phase::recompute)
      return;
    const bool isByHand = comesFromGradient(op);
    if (isByHand)
      for (const auto output : document_.outputs(op))
        if (output && !members_.nameOf(output)) ofGradient_[output] = 1;
    const auto written = writtenOperands(document_, op);
    for (const auto operand : document_.operands(op)) {
      const auto* name = members_.nameOf(operand);
      if (!name || name->role != "parameter" || !members_.isOptimized(name->name)) continue;
      const bool isWritten = std::ranges::find(written, operand) != written.end();
      if (recorded.phase == Phase::optimizer) {
        if (isWritten) updated_[name->name] = op.index;
      } else if (!isWritten) {
        if (recorded.hasNode) used_[name->name] = op.index;
      } else if (!isByHand && isForward(recorded.phase) &&
                 document_.symbol(op).name.find("renorm_") == std::string::npos) {
        wrote(op, name->name);
      }
    }
  }

  /// The claim's line follows: it is said here only of a write that was noticed later.
  std::string writerOf(BoundSymbolId op) const {
    return recording_.op(op).since ? writerText(document_, recording_, op) : document_.symbol(op).name;
  }

  void wrote(BoundSymbolId op, const std::string& parameter) {
    const auto used = used_.find(parameter);
    const auto updated = updated_.find(parameter);
    if (used == used_.end() && updated == updated_.end()) return;  // before the first forward: made ready
    const bool isBetween = used != used_.end() && (updated == updated_.end() || used->second > updated->second);
    groups_.add(
        {.by = Producer::books,
         .severity = Severity::suspicion,
         .kind = "weight-written",
         .sentence = fmt::format("weights are written outside of the optimizer, by {}, {}", writerOf(op),
                                 isBetween ? "between their forward and their update" : "after their update"),
         .remedy = isBetween ? "write them after the update, so that the gradient is that of the weight it changes"
                             : "nothing if the loop means to write the model itself",
         .line = recordedLine(document_, op),
         .op = op,
         .command = "source"},
        parameter);
  }

  const Document& document_;
  const StepRecording& recording_;
  const std::vector<BoundSymbolId>& ops_;
  const StepMembers& members_;
  IdVector<ValueId, char> ofGradient_;
  std::map<std::string, std::int64_t> used_, updated_;  ///< by parameter: the last op
  ClaimGroups groups_;
};

/// Ops of the forward whose results no backward reaches.
class Dropped {
 public:
  Dropped(const Analysis& analysis, const StepMembers& members)
      : analysis_(analysis),
        document_(*analysis.document),
        recording_(*analysis.file.recording),
        ops_(analysis.joint.ops),
        members_(members),
        isReached_(document_.valueCount(), 0),
        leads_(document_.valueCount(), 0),
        isUsed_(document_.valueCount(), 0),
        isRead_(document_.valueCount(), 0) {}

  std::vector<Claim> claims() {
    findReached();
    findLeading();
    std::vector<Claim> claims;
    for (std::size_t i = 0; i < end_; ++i) {
      const auto output = lostOutput(ops_[i]);
      if (!output) continue;
      auto claim = claimOf(ops_[i], output);
      const bool isSaid = std::ranges::any_of(
          claims, [&](const Claim& one) { return one.sentence == claim.sentence && one.line == claim.line; });
      if (!isSaid) claims.push_back(std::move(claim));
    }
    return claims;
  }

 private:
  void findReached() {
    for (const auto loss : recording_.losses) isReached_[loss] = 1;
    for (std::size_t i = ops_.size(); i-- > 0;) {
      const auto op = ops_[i];
      const auto phase = recording_.op(op).phase;
      const auto from = document_.boundSymbol(op).origin.op;
      if (phase == Phase::backward) {
        end_ = std::max(end_, i);
        if (recording_.has(from) && from != op)
          for (const auto output : document_.outputs(from))
            if (output) isReached_[output] = 1;
      }
      const auto outputs = document_.outputs(op);
      if (std::ranges::any_of(outputs, [&](ValueId v) { return v && isReached_[v]; }))
        for (const auto operand : document_.operands(op)) isReached_[operand] = 1;
    }
  }

  /// What leads to a parameter of an optimizer by way of ops with nodes; what other such ops, or the loop, read.
  void findLeading() {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const auto op = ops_[i];
      const bool isAlias = isAliasOfAutograd(document_, recording_, op);
      const bool hasNode = recording_.op(op).hasNode || isAlias;
      bool leads = false;
      for (const auto operand : document_.operands(op)) {
        const auto* name = members_.nameOf(operand);
        leads |= leads_[operand] || (name && name->isWeight() && members_.isOptimized(name->name));
        if (hasNode) isUsed_[operand] = 1;
        else isRead_[operand] = 1;
      }
      if (!hasNode || !leads) continue;
      for (const auto output : document_.outputs(op))
        if (output) leads_[output] = 1;
    }
  }

  /// A single number that could have been part of the loss.
  ValueId lostOutput(BoundSymbolId op) const {
    const auto& recorded = recording_.op(op);
    const auto outputs = document_.outputs(op);
    if (!recorded.hasNode || !isForward(recorded.phase) || outputs.empty() || !outputs[0]) return {};
    const auto output = outputs[0];
    if (!document_.isTensor(output) || !isDifferentiable(document_.meta(output).dtype)) return {};
    const bool isLost =
        document_.meta(output).elements() == 1 && leads_[output] && !isReached_[output] && !isUsed_[output];
    return isLost ? output : ValueId();
  }

  /// Parameters behind a value that got no gradient at all.
  std::vector<std::string> deadBehind(ValueId value) const {
    std::set<std::string> found;
    std::set<std::int32_t> seen;
    std::vector<ValueId> open{value};
    while (!open.empty()) {
      const auto next = open.back();
      open.pop_back();
      if (!next || !seen.insert(next.index).second) continue;
      if (const auto* name = members_.nameOf(next);
          name && std::ranges::find(recording_.withoutGradient, name->name) != recording_.withoutGradient.end())
        found.insert(name->name);
      const auto producer = document_.value(next).producer;
      if (producer && leads_[next])
        for (const auto operand : document_.operands(producer)) open.push_back(operand);
    }
    return {found.begin(), found.end()};
  }

  Claim claimOf(BoundSymbolId op, ValueId output) const {
    const bool isRead = isRead_[output] != 0;
    const auto dead = deadBehind(output);
    if (!dead.empty())
      return {.by = Producer::books,
              .kind = "dropped-work",
              .sentence = fmt::format("no backward reaches this result of {}, which leaves {} without a gradient",
                                      document_.symbol(op).name, namesText(dead)),
              .remedy = "add it to the loss",
              .line = recordedLine(document_, op),
              .parameters = dead,
              .op = op,
              .value = output,
              .command = "source"};
    return {.by = Producer::books,
            .severity = isRead ? Severity::note : Severity::suspicion,
            .kind = "dropped-work",
            .sentence = fmt::format("no backward reaches this result of {}, which depends on trained parameters{}",
                                    document_.symbol(op).name, isRead ? "; the loop reads its number" : ""),
            .remedy = isRead ? "" : "add it to the loss; compute it under no_grad if it is none",
            .line = recordedLine(document_, op),
            .op = op,
            .value = output,
            .command = "source"};
  }

  const Analysis& analysis_;
  const Document& document_;
  const StepRecording& recording_;
  const std::vector<BoundSymbolId>& ops_;
  const StepMembers& members_;
  IdVector<ValueId, char> isReached_, leads_, isUsed_, isRead_;
  std::size_t end_ = 0;  ///< where the last backward ends
};

/// Notes on modes that a loop forgets.
class Modes {
 public:
  Modes(const Analysis& analysis, const StepMembers& members)
      : document_(*analysis.document),
        recording_(*analysis.file.recording),
        ops_(analysis.joint.ops),
        members_(members) {
    for (const auto op : ops_)
      if (recording_.op(op).phase == Phase::recompute) repeated_.insert(document_.boundSymbol(op).origin.op);
  }

  std::vector<Claim> claims() {
    for (const auto& [backward, modules] : recording_.inEval) inEval(modules);
    for (const auto op : ops_) {
      dropout(op);
      statistics(op);
      cast(op);
    }
    auto claims = groups_.take();
    for (auto& claim : claims) {
      claim.sentence += ": " + namesText(claim.parameters);
      claim.parameters.clear();
    }
    return claims;
  }

 private:
  void note(const char* kind, std::string sentence, BoundSymbolId op, const std::string& subject) {
    groups_.add({.by = Producer::books,
                 .severity = Severity::note,
                 .kind = kind,
                 .sentence = std::move(sentence),
                 .line = op ? recordedLine(document_, op) : std::string(),
                 .op = op},
                subject);
  }

  void inEval(const std::vector<std::string>& modules) {
    for (const auto& module : modules) {
      note("eval-in-backward", "in eval while a backward goes through it", {}, module.empty() ? "the model" : module);
    }
  }

  void dropout(BoundSymbolId op) {
    const auto& bound = document_.boundSymbol(op);
    const auto& recorded = recording_.op(op);
    const auto& name = document_.symbol(op).name;
    const bool draws = name.find("dropout") != std::string::npos || name.find("bernoulli") != std::string::npos;
    if (!draws || bound.gradMode || !bound.module || recorded.phase != Phase::forward || recorded.function ||
        repeated_.contains(op))
      return;
    note("dropout-without-gradient", "dropout draws under no_grad: the model is in train", op,
         std::string(document_.text(bound.module)));
  }

  void statistics(BoundSymbolId op) {
    if (recording_.op(op).phase != Phase::recompute) return;
    for (const auto operand : writtenOperands(document_, op))
      if (const auto* name = members_.nameOf(operand); name && name->role == "buffer")
        note("statistics-twice", "a recomputation updates statistics again that its forward updated", op, name->name);
  }

  /// A copy in another dtype that autocast keeps is of the weights from before an update.
  void cast(BoundSymbolId op) {
    const auto& recorded = recording_.op(op);
    const auto written = writtenOperands(document_, op);
    for (const auto operand : document_.operands(op)) {
      const auto* name = members_.nameOf(operand);
      if (name && name->role == "parameter") {
        if (document_.symbol(op).name == "aten._to_copy.default" && isForward(recorded.phase))
          casts_[document_.outputs(op)[0].index] = name->name;
        if (recorded.phase == Phase::optimizer && std::ranges::find(written, operand) != written.end())
          std::erase_if(casts_, [&](auto& one) {
            if (one.second == name->name) stale_.insert(one);
            return one.second == name->name;
          });
      } else if (operand && isForward(recorded.phase) && recorded.hasNode && stale_.contains(operand.index)) {
        note("stale-cast", "a copy that autocast made before the update is read after it", op,
             stale_.at(operand.index));
      }
    }
  }

  const Document& document_;
  const StepRecording& recording_;
  const std::vector<BoundSymbolId>& ops_;
  const StepMembers& members_;
  std::set<BoundSymbolId> repeated_;
  std::map<std::int32_t, std::string> casts_, stale_;  ///< by value: the parameter
  ClaimGroups groups_;
};

/// "h.3.weight" and "h.7.weight" are of layers that were made as copies.
std::string withoutNumbers(const std::string& name) {
  std::string text;
  for (const char c : name)
    if (c < '0' || c > '9') text += c;
  return text;
}

}  // namespace

std::vector<Claim> writesOutside(const Analysis& analysis, const StepMembers& members) {
  return Writes(analysis, members).claims();
}

std::vector<Claim> droppedWork(const Analysis& analysis, const StepMembers& members) {
  return Dropped(analysis, members).claims();
}

std::vector<Claim> modesOf(const Analysis& analysis, const StepMembers& members) {
  return Modes(analysis, members).claims();
}

std::vector<Claim> oddUpdates(const OptimizerUpdates& updates) {
  constexpr double clearly = 0.3;
  std::vector<Claim> claims;
  std::set<std::string> before;
  for (const auto& step : updates.steps) {
    double product = 0, both = 0;
    bool isEach = true, allBegin = true;
    std::vector<std::string> names;
    for (const auto& one : step.parameters) {
      if (!one.update) continue;
      names.push_back(one.parameter);
      allBegin &= one.beginsStates;
      if (!one.along || !one.read || one.update->norm == 0) continue;
      product += *one.along;
      both += one.update->norm * one.read->norm;
      isEach &= *one.along > 0;
    }
    const bool isSaid =
        std::ranges::any_of(claims, [](const Claim& one) { return one.kind == "update-along-gradient"; });
    if (isEach && both > 0 && product > clearly * both && !isSaid)
      claims.push_back(
          {.by = Producer::books,
           .severity = Severity::suspicion,
           .kind = "update-along-gradient",
           .sentence = fmt::format("the update of {} goes along the gradient (cosine {:.2g}): the loss grows",
                                   titleOf(updates, step), product / both),
           .remedy = "subtract it, or negate the loss; nothing if the loss is to grow",
           .line = step.line,
           .parameters = names,
           .op = step.op,
           .command = "source"});
    const bool isLate = std::ranges::any_of(names, [&](const std::string& name) { return before.contains(name); }) ||
                        (before.empty() && step.step > 0);
    before.insert(names.begin(), names.end());
    if (isLate && allBegin)
      claims.push_back(
          {.by = Producer::books,
           .severity = Severity::suspicion,
           .kind = "moments-begin",
           .sentence = fmt::format("the moments of the optimizer begin at 0 in {}", titleOf(updates, step)),
           .remedy = "make the optimizer once, before the loop, and load its state with the model's",
           .line = step.line,
           .parameters = names,
           .op = step.op});
  }
  return claims;
}

void EqualParameters::begins(const std::vector<std::pair<ValueId, c10::IValue>>& given) {
  std::map<std::pair<std::uint64_t, std::vector<std::int64_t>>, std::pair<std::string, StorageId>> seen;
  ClaimGroups groups;
  for (const auto& [id, value] : given) {
    const auto* name = members_.nameOf(id);
    if (!name || name->role != "parameter" || !value.isTensor() || !members_.isOptimized(name->name)) continue;
    const auto& tensor = value.toTensor();
    if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.numel() < 2) continue;
    if (tensor.is_complex() || tensor.min().equal(tensor.max())) continue;  // as biases and scales begin
    const auto key = std::pair(recordedHashOf(tensor), tensor.sizes().vec());
    const auto [it, isNew] = seen.try_emplace(key, name->name, name->storage);
    if (isNew || it->second.second == name->storage) continue;
    const auto& other = it->second.first;
    const bool isCopy = withoutNumbers(other) == withoutNumbers(name->name);
    groups.add(
        {.by = Producer::books,
         .severity = isCopy ? Severity::note : Severity::suspicion,
         .kind = "equal-not-tied",
         .sentence = isCopy ? "layers begin with equal numbers"
                            : fmt::format("{} and {} hold equal numbers and are not tied: each learns for itself",
                                          other, name->name),
         .remedy = isCopy ? "" : "assign the parameter itself, not its data, if they are to be one"},
        name->name);
  }
  claims_ = groups.take();
  for (auto& claim : claims_)
    if (claim.severity == Severity::suspicion) claim.parameters.clear();  // the sentence has both
}

}  // namespace retrograd
