#include "core/torch/checking/tensor_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/id_vector.h"
#include "core/torch/judging/named_results.h"

namespace retrograd {
namespace {

/// By value: it depends on a cotangent of an output that was left out.
IdVector<ValueId, char> ledToByMissingOutputs(const Analysis& analysis) {
  const auto& document = *analysis.document;
  const auto& joint = analysis.joint;
  const auto inputs = analysis.computation().inputs.size();
  IdVector<ValueId, char> reached(document.valueCount(), 0);
  for (std::size_t i = 0; i < analysis.computation().outputs.size(); ++i)
    if (const auto cotangent = joint.inputs.at(inputs + i); cotangent && analysis.leftOut->reason(joint.outputs[i]))
      reached[cotangent] = 1;
  for (auto op : joint.ops) {
    bool any = false;
    for (auto operand : document.operands(op)) any |= operand && reached[operand];
    if (!any) continue;
    for (auto output : document.outputs(op))
      if (output) reached[output] = 1;
  }
  return reached;
}

}  // namespace

void TensorClaims::add(Producer by, const std::string& name, Measure measure) {
  compared_.insert(name);
  claims_.push_back(claimOf(by, name, std::move(measure)));
}

Claim warningClaim(std::string text) {
  return {.by = Producer::books, .severity = Severity::suspicion, .kind = "warning", .sentence = std::move(text)};
}

void addWarnings(const Analysis& analysis, std::vector<Claim>& claims) {
  for (const auto* level = &analysis; level; level = level->differentiated.get())
    for (const auto& problem : level->problems) {
      if (problem.severity != Problem::Severity::warning) continue;
      auto text = (problem.place.empty() ? "" : problem.place + ": ") + problem.message;
      if (std::ranges::find(claims, text, &Claim::sentence) == claims.end())
        claims.push_back(warningClaim(std::move(text)));
    }
}

std::optional<ReferenceGradients> TensorClaims::referenceGradients() const {
  ReferenceGradients found;
  for (const auto& claim : claims_) {
    const bool ofReference = claim.by == Producer::reference && isGradientName(claim.subject);
    if (ofReference && claim.good() && claim.measure->scale > 0) found.right.insert(claim.subject);
    if (claim.good() || claim.by == Producer::doubleReference) continue;
    if (!ofReference) return std::nullopt;
    found.wrong.insert(claim.subject);
  }
  return found.wrong.empty() ? std::nullopt : std::optional(found);
}

Claim notComparedClaim(std::string name) {
  auto sentence = name + " was compared with nothing but the joint trace's";
  return {.by = Producer::session,
          .severity = Severity::note,
          .kind = "not-compared",
          .subject = std::move(name),
          .sentence = std::move(sentence)};
}

NotJudged notCompared(const Analysis& analysis, std::string name) {
  return {std::move(name), analysis.leftOut ? "nothing was compared with it: opaque ops did not run, " +
                                                  opaqueOpsText(*analysis.document, analysis.joint.ops)
                                            : "nothing was compared with it: the model has nothing of that name"};
}

void TensorClaims::writeTo(Report& report, const TensorMap& given) const {
  auto claims = claims_;
  worstFirst(claims);
  report.claims.insert(report.claims.begin(), std::make_move_iterator(claims.begin()),
                       std::make_move_iterator(claims.end()));
  report.unit = "tensor";
  report.judged = report.due = compared_.size();
  for (const auto& [name, tensor] : given) {
    if (compared_.contains(name)) continue;
    ++report.due;
    report.claims.push_back(notComparedClaim(name));
  }
}

std::size_t countMissingOrigins(const Analysis& analysis) {
  std::size_t missing = 0;
  for (const auto* trace : {&analysis.joint, &analysis.backward})
    for (auto op : trace->ops) {
      const auto& origin = analysis.document->boundSymbol(op).origin;
      if (origin.role == Role::none || (!origin.op && !origin.value)) ++missing;
    }
  return missing;
}

void compareBits(TensorClaims& claims, Producer by, const TensorMap& run, const TensorMap& joint) {
  forEachName(run, joint, [&](const std::string& name, const TensorData* x, const TensorData* y) {
    if (!x || !y) claims.fail(by, name, x ? "missing in the joint trace's run" : "missing");
    else if (!identical(*x, *y)) claims.fail(by, name, "is not bit for bit what the joint trace gives");
  });
}

LeftOutNames leftOutNames(const Analysis& analysis) {
  LeftOutNames left;
  if (!analysis.leftOut) return left;
  const auto reached = ledToByMissingOutputs(analysis);
  for (const auto& [name, value] : namedValues(analysis)) {
    if (analysis.leftOut->reason(value)) left.names.insert(name);
    else if (isGradientName(name) && value && reached[value]) left.partial.insert(name);
  }
  for (auto& name : refusedGradientNames(analysis)) left.names.insert(std::move(name));
  return left;
}

void addLeftOut(const Analysis& analysis, const LeftOutNames& left, std::vector<Claim>& claims) {
  auto note = "opaque ops did not run: " + opaqueOpsText(*analysis.document, analysis.joint.ops);
  if (left.names.empty()) note += "; nothing depends on what they compute";
  if (!left.partial.empty())
    note +=
        fmt::format("; {} not compared with LibTorch's autograd, which lacks the part of the outputs that are left out",
                    left.partial.size() == 1 ? "1 gradient is" : fmt::format("{} gradients are", left.partial.size()));
  claims.push_back({.by = Producer::books, .severity = Severity::note, .kind = "opaque-ops", .sentence = note});
  for (const auto& name : left.names)
    claims.push_back({.by = Producer::books,
                      .severity = Severity::note,
                      .kind = "left-out",
                      .subject = name,
                      .sentence = name + " is left out: it depends on opaque ops"});
}

}  // namespace retrograd
