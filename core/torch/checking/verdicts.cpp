#include "core/torch/checking/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/id_vector.h"
#include "core/torch/judging/named_results.h"

namespace retrograd {
namespace {

std::string reasonOf(const TensorVerdict& verdict) {
  if (!verdict.failure.empty()) return verdict.name + ": " + verdict.failure;
  return fmt::format("{} deviates by {:.2g}, its tolerance is {:.2g} (largest element {:.2g})", verdict.name,
                     verdict.deviation, verdict.tolerance, verdict.scale);
}

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

std::string tensorOf(const std::string& verdictName) {
  for (const std::string_view prefix : {"f64/", "eager/", "eager2/", "cpu/", "split/", "session/"})
    if (verdictName.starts_with(prefix)) return verdictName.substr(prefix.size());
  return verdictName;
}

void Verdicts::add(TensorVerdict verdict) {
  markCompared(verdict.name);
  verdicts_.push_back(std::move(verdict));
}

void Verdicts::fail(const std::string& name, std::string reason) {
  add({name, std::numeric_limits<double>::infinity(), 0, 0, std::move(reason)});
}

void addWarnings(const Analysis& analysis, std::vector<std::string>& warnings) {
  for (const auto* level = &analysis; level; level = level->differentiated.get())
    for (const auto& problem : level->problems) {
      if (problem.severity != Problem::Severity::warning) continue;
      auto text = (problem.place.empty() ? "" : problem.place + ": ") + problem.message;
      if (std::ranges::find(warnings, text) == warnings.end()) warnings.push_back(std::move(text));
    }
}

std::optional<ReferenceGradients> Verdicts::referenceGradients() const {
  ReferenceGradients found;
  for (const auto& verdict : verdicts_) {
    const bool ofReference = tensorOf(verdict.name) == verdict.name && isGradientName(verdict.name);
    if (ofReference && verdict.good() && verdict.scale > 0) found.right.insert(verdict.name);
    if (verdict.good() || verdict.name.starts_with("f64/")) continue;
    if (!ofReference) return std::nullopt;
    found.wrong.insert(verdict.name);
  }
  return found.wrong.empty() ? std::nullopt : std::optional(found);
}

void Verdicts::writeTo(CheckReport& report, const TensorMap& given) const {
  report.tensors = verdicts_;
  const TensorVerdict* worst = nullptr;
  const TensorVerdict* failed = nullptr;
  std::set<std::string> noisy, wrong;
  for (const auto& verdict : verdicts_) {
    if (verdict.tooNoisy()) noisy.insert(tensorOf(verdict.name));
    if (verdict.deviation > 0 && (!worst || verdict.ratio() > worst->ratio())) worst = &verdict;
    if (verdict.good()) continue;
    wrong.insert(tensorOf(verdict.name));
    if (!failed || verdict.ratio() > failed->ratio()) failed = &verdict;
  }
  if (failed) worst = failed;
  if (worst) {
    report.worst = worst->name;
    report.error = worst->deviation;
    report.tolerance = worst->tolerance;
    report.scale = worst->scale;
  }
  if (failed) {
    report.status = CheckStatus::fail;
    if (report.reason.empty()) report.reason = reasonOf(*failed);
    if (wrong.size() > 1) report.reason += fmt::format("; {} tensors fail", wrong.size());
  }
  report.tooNoisy.assign(noisy.begin(), noisy.end());
  for (const auto& [name, tensor] : given)
    if (!compared_.contains(name)) report.notCompared.push_back(name);
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

void compareBits(Verdicts& verdicts, const std::string& prefix, const TensorMap& run, const TensorMap& joint) {
  forEachName(run, joint, [&](const std::string& name, const TensorData* x, const TensorData* y) {
    if (!x || !y) verdicts.fail(prefix + name, x ? "missing in the joint trace's run" : "missing");
    else if (!identical(*x, *y)) verdicts.fail(prefix + name, "is not bit for bit what the joint trace gives");
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

std::string leftOutNote(const Analysis& analysis, const LeftOutNames& left) {
  auto note = "opaque ops did not run: " + opaqueOpsText(*analysis.document, analysis.joint.ops);
  std::size_t count = 0;
  for (const auto& name : left.names) {
    if (++count > 3) break;
    note += (count == 1 ? "; left out: " : ", ") + name;
  }
  if (left.names.size() > 3) note += ", ...";
  if (left.names.empty()) note += "; nothing depends on what they compute";
  if (!left.partial.empty())
    note += "; " + std::to_string(left.partial.size()) +
            (left.partial.size() == 1 ? " gradient is" : " gradients are") +
            " not compared with LibTorch's autograd, which lacks the part of the outputs that are left out";
  return note;
}

}  // namespace retrograd
