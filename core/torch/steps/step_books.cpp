// Who is who: the parameters of model and optimizers, and what their memory is called.
#include "core/torch/steps/step_books.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/judge/report.h"
#include "core/questions/why_recorded.h"
#include "core/trace/effects.h"

namespace retrograd {

void ClaimGroups::add(Claim claim, const std::string& parameter) {
  const auto same = std::ranges::find_if(claims_, [&](const Claim& one) {
    return one.kind == claim.kind && one.sentence == claim.sentence && one.line == claim.line;
  });
  if (same == claims_.end()) {
    claim.subject = parameter;
    claim.parameters = {parameter};
    claims_.push_back(std::move(claim));
  } else if (std::ranges::find(same->parameters, parameter) == same->parameters.end()) {
    same->parameters.push_back(parameter);
  }
}

bool handsGradientOn(const Document& document, const StepRecording& recording, BoundSymbolId op) {
  if (document.symbol(op).name.find("c10d") != std::string::npos) return true;
  const auto written = writtenOperands(document, op);
  return !written.empty() && std::ranges::none_of(written, [&](ValueId value) {
    return std::ranges::any_of(recording.names, [&](const RecordedName& name) {
      return name.role == "gradient" && name.storage == document.value(value).storage;
    });
  });
}

StepMembers::StepMembers(const Analysis& analysis)
    : analysis_(analysis),
      document_(*analysis.document),
      recording_(*analysis.file.recording),
      ops_(analysis.joint.ops) {
  for (const auto& name : recording_.names) {
    names_.emplace(name.storage, &name);
    if (name.role == "gradient") gradients_.emplace(name.storage, name.name);
  }
  for (const auto& optimizer : recording_.optimizers)
    for (const auto& one : optimizer.parameters) {
      optimized_.insert(one.name);
      if (!one.standsFor.empty()) standFor_.insert(one.standsFor);
    }
  for (const auto op : ops_) {
    const auto& recorded = recording_.op(op);
    if (recorded.accumulates) got_.emplace(document_.text(recorded.accumulates));
    if (recorded.phase != Phase::forward && recorded.phase != Phase::loss && recorded.phase != Phase::other) continue;
    if (!recorded.hasNode) continue;
    for (const auto operand : document_.operands(op))
      if (const auto* name = nameOf(operand); name && name->isWeight()) read_.insert(name->name);
  }
}

const RecordedName* StepMembers::nameOf(ValueId value) const {
  if (!value || !document_.isTensor(value)) return nullptr;
  const auto storage = document_.value(value).storage;
  const auto found = storage ? names_.find(storage) : names_.end();
  return found == names_.end() ? nullptr : found->second;
}

const std::string& StepMembers::gradientOf(ValueId value) const {
  static const std::string none;
  if (!value || !document_.isTensor(value)) return none;
  const auto storage = document_.value(value).storage;
  const auto found = storage ? gradients_.find(storage) : gradients_.end();
  return found == gradients_.end() ? none : found->second;
}

std::vector<Claim> StepMembers::claims() const {
  std::vector<Claim> claims;
  claimForeign(claims);
  claimWithoutGradient(claims);
  claimUntrained(claims);
  return claims;
}

/// An optimizer with parameters that the model does not have updates something else.
void StepMembers::claimForeign(std::vector<Claim>& claims) const {
  if (recording_.parameters.empty()) return;
  for (const auto& optimizer : recording_.optimizers) {
    std::vector<std::string> replaced, own;
    for (const auto& one : optimizer.parameters)
      (one.standsFor.empty() ? own : replaced).push_back(one.standsFor.empty() ? one.name : one.standsFor);
    if (replaced.empty()) continue;
    Claim claim{
        .by = Producer::books, .kind = "optimizer-foreign", .subject = replaced.front(), .parameters = replaced};
    if (own.empty()) {
      claim.sentence = fmt::format("{} has {} parameters, and none of them is the model's: it updates copies",
                                   optimizer.name, replaced.size());
      claim.remedy = "make the optimizer of the parameters of the model that is trained";
    } else {
      // Where part of a module is still the optimizer's, one tensor was put in place of another; else a layer was.
      const auto moduleOf = [](const std::string& name) { return name.substr(0, name.rfind('.') + 1); };
      const bool isPart = std::ranges::any_of(replaced, [&](const std::string& name) {
        return std::ranges::any_of(own, [&](const std::string& one) { return moduleOf(one) == moduleOf(name); });
      });
      claim.severity = isPart ? Severity::fault : Severity::suspicion;
      claim.sentence =
          fmt::format("{} {} replaced after {} was made, which updates the old {}", namesText(replaced),
                      replaced.size() == 1 ? "was" : "were", optimizer.name, replaced.size() == 1 ? "one" : "ones");
      claim.remedy = "make the optimizer after the model is changed";
      claim.parameters.clear();
    }
    claims.push_back(std::move(claim));
  }
}

/// Parameters of an optimizer without a gradient: frozen, unused by the forward, or cut off.
void StepMembers::claimWithoutGradient(std::vector<Claim>& claims) const {
  std::vector<std::string> frozen;
  for (const auto& optimizer : recording_.optimizers)
    for (const auto& one : optimizer.parameters)
      if (!one.requiresGrad && one.standsFor.empty() && !got_.contains(one.name)) frozen.push_back(one.name);
  if (!frozen.empty())
    claims.push_back(
        {.by = Producer::books,
         .severity = Severity::suspicion,
         .kind = "optimizer-frozen",
         .subject = frozen.front(),
         .sentence =
             fmt::format("{} parameter{} of the optimizer got no gradient and {} not require one: {}", frozen.size(),
                         frozen.size() == 1 ? "" : "s", frozen.size() == 1 ? "does" : "do", namesText(frozen)),
         .remedy = "let them require a gradient, if they are to learn; else leave them out of the optimizer"});
  std::vector<std::string> unused, dead;
  for (const auto& name : recording_.withoutGradient) {
    const bool isForeign = std::ranges::any_of(recording_.optimizers, [&](const RecordedOptimizer& optimizer) {
      const auto one = std::ranges::find(optimizer.parameters, name, &RecordedParameter::name);
      return one != optimizer.parameters.end() && !one->standsFor.empty();
    });
    if (!isForeign) (read_.contains(name) ? dead : unused).push_back(name);
  }
  if (!dead.empty()) claims.push_back(withoutGradient(dead));
  if (unused.empty()) return;
  const bool isAll = unused.size() == recording_.optimized.size();
  claims.push_back({.by = Producer::books,
                    .severity = isAll ? Severity::fault : Severity::note,
                    .kind = "unused-parameter",
                    .subject = unused.front(),
                    .sentence = fmt::format("{} of {} parameters given to the optimizer are used by no op of the "
                                            "forward, and got no gradient: {}",
                                            unused.size(), recording_.optimized.size(), namesText(unused))});
}

/// Names the places that cut them off.
Claim StepMembers::withoutGradient(const std::vector<std::string>& dead) const {
  constexpr std::size_t most = 3;  // causes that are told apart
  Claim claim{.by = Producer::books,
              .kind = "no-gradient",
              .subject = dead.front(),
              .sentence = fmt::format("{} of {} parameters given to the optimizer got no gradient: {}", dead.size(),
                                      recording_.optimized.size(), namesText(dead)),
              .remedy = "let the loss depend on them, or give the optimizer only what is to learn"};
  const auto causes = causesOfNoGradient(analysis_, dead);
  for (std::size_t i = 0; i < std::min(most, causes.size()); ++i) {
    const auto& cause = causes[i];
    if (!cause.stop) continue;
    if (!claim.op && cause.stop->op) {
      claim.op = cause.stop->op;
      claim.command = "source";
    }
    if (causes.size() == 1) {
      claim.sentence += "; " + cause.reason;
      claim.line = cause.line;
      break;
    }
    claim.sentence += fmt::format("; of {}: {}{}{}", namesText(cause.parameters), cause.reason,
                                  cause.line.empty() ? "" : ", ", cause.line);
  }
  return claim;
}

void StepMembers::claimUntrained(std::vector<Claim>& claims) const {
  if (!knowsOptimizers()) return;
  std::vector<std::string> untrained;
  for (const auto& name : got_)
    if (!isOptimized(name) && !standFor_.contains(name)) untrained.push_back(name);
  if (untrained.empty()) return;
  claims.push_back({.by = Producer::books,
                    .severity = Severity::suspicion,
                    .kind = "gradient-in-no-optimizer",
                    .subject = untrained.front(),
                    .sentence = fmt::format("{} parameter{} a gradient and {} in no optimizer: {}", untrained.size(),
                                            untrained.size() == 1 ? " has" : "s have",
                                            untrained.size() == 1 ? "is" : "are", namesText(untrained)),
                    .remedy = "give them to an optimizer, if they are to learn; else let them require no gradient"});
}

}  // namespace retrograd
