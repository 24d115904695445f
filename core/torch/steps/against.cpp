#include "core/torch/steps/against.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/formats/recording/recording.h"
#include "core/torch/steps/against_loops.h"

namespace retrograd {
namespace {

constexpr double sameNumber = 1e-3;  ///< of two ratios: they are one factor
constexpr double sameFactor = 0.02;  ///< of the factors of two cuts

bool isCut(const Claim& claim) { return claim.by == Producer::derivative; }

/// The function of the user's that a line is in: it stays where lines move.
std::string functionIn(const std::string& line) {
  const auto in = line.rfind(" in ");
  return in == std::string::npos ? line : line.substr(in + 4);
}

bool isSame(const Claim& a, const Claim& b) {
  return a.kind == b.kind && functionIn(a.line) == functionIn(b.line) && (!isCut(a) || a.subject == b.subject);
}

const Claim* sameIn(const std::vector<Claim>& claims, const Claim& claim) {
  const auto found = std::ranges::find_if(claims, [&](const Claim& one) { return isSame(one, claim); });
  return found == claims.end() ? nullptr : &*found;
}

std::optional<double> factorOf(const Claim& claim) {
  return claim.measure ? claim.measure->factor : std::optional<double>();
}

bool isNear(double a, double b) { return std::abs(a - b) <= sameNumber * std::max(std::abs(a), std::abs(b)); }

const ParameterUpdate* updateOf(const OptimizerStep& step, const std::string& parameter) {
  const auto found = std::ranges::find(step.parameters, parameter, &ParameterUpdate::parameter);
  return found == step.parameters.end() ? nullptr : &*found;
}

/// Where the number that a backward began from was made.
BoundSymbolId rootOf(const JudgedStep& judged) {
  const auto& losses = judged.analysis->file.recording->losses;
  return losses.empty() ? BoundSymbolId() : judged.analysis->document->value(losses.front()).producer;
}

std::string rootText(const JudgedStep& judged) {
  const auto op = rootOf(judged);
  if (!op) return {};
  const auto& name = judged.analysis->document->symbol(op).name;
  const auto* verb = name.starts_with("aten.div")   ? "is divided"
                     : name.starts_with("aten.mul") ? "is multiplied"
                                                    : "is made";
  const auto line = recordedLine(*judged.analysis->document, op);
  return line.empty() ? std::string() : fmt::format("the loss that backward began from {} at {}", verb, line);
}

/// Gradients of the first update, where data and weights are the same.
void compareGradients(const JudgedStep& judged, const JudgedStep& good, std::vector<Claim>& claims) {
  if (judged.step.updates.steps.empty() || good.step.updates.steps.empty()) return;
  const auto &mine = judged.step.updates.steps.front(), &right = good.step.updates.steps.front();
  std::vector<std::string> names;
  double least = 0, most = 0;
  for (const auto& one : mine.parameters) {
    const auto* other = updateOf(right, one.parameter);
    if (!other || !one.read || !other->read || other->read->norm == 0) continue;
    const auto before = [](const ParameterUpdate& update) {
      return update.gradient ? update.gradient->norm : update.read->norm;
    };
    const auto ratio = before(one) / before(*other);
    least = names.empty() ? ratio : std::min(least, ratio);
    most = names.empty() ? ratio : std::max(most, ratio);
    names.push_back(one.parameter);
  }
  if (names.empty() || (isNear(least, 1) && isNear(most, 1))) return;
  const auto root = rootText(judged);
  Claim claim{
      .by = Producer::run,
      .kind = "against-gradients",
      .sentence = isNear(least, most)
                      ? fmt::format("all gradients are {:.4g} times those of the recording that is right", most)
                      : fmt::format("gradients are {:.3g} to {:.3g} times those of the recording that is right, "
                                    "which began with the same data and weights",
                                    least, most),
      .line = rootOf(judged) ? recordedLine(*judged.analysis->document, rootOf(judged)) : std::string(),
      .parameters = names,
      .op = rootOf(judged),
      .command = "source"};
  if (!root.empty()) claim.sentence += "; " + root;
  claims.push_back(std::move(claim));
}

}  // namespace

void weighAgainst(Claim& claim, const std::vector<Claim>& right) {
  if (claim.severity == Severity::fault) return;
  const auto become = [&](Severity severity, const std::string& why) {
    claim.severity = severity;
    claim.sentence += " (" + why + ")";
  };
  const auto* same = sameIn(right, claim);
  const auto mine = factorOf(claim), other = same ? factorOf(*same) : std::nullopt;
  if (!same)
    become(Severity::fault,
           isCut(claim) ? "the recording that is right has no such cut" : "not in the recording that is right");
  else if (mine && other && std::abs(*other - *mine) > sameFactor * std::abs(*other))
    become(Severity::fault, fmt::format("it is {:.3g} times the derivative in the recording that is right", *other));
  else become(Severity::note, "the recording that is right has it, too");
}

std::vector<Claim> differencesFrom(const JudgedStep& judged, std::vector<Claim>& mine, const JudgedStep& good,
                                   const std::vector<Claim>& right) {
  auto claims = otherBeginnings(*judged.analysis, *good.analysis);
  const bool beginsAlike = claims.empty();
  for (auto& claim : mine)
    if (claim.by == Producer::books || isCut(claim)) weighAgainst(claim, right);
  for (const auto& claim : right) {
    if (!isCut(claim) || sameIn(mine, claim)) continue;
    claims.push_back({.by = Producer::run,
                      .kind = "against-cut-missing",
                      .subject = claim.subject,
                      .sentence = fmt::format("the recording that is right has a cut that this one lacks: {}, {}",
                                              claim.sentence, claim.line),
                      .parameters = claim.parameters});
  }
  for (auto& claim : otherLoops(*judged.analysis, *good.analysis)) claims.push_back(std::move(claim));
  if (beginsAlike) compareGradients(judged, good, claims);
  return claims;
}

}  // namespace retrograd
