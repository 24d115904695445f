#pragma once
#include <set>
#include <string>
#include <vector>

#include "core/torch/checking/check.h"
#include "core/torch/checking/judge.h"

namespace retrograd {

/// "grad.p.w" for "f64/grad.p.w", "eager/grad.p.w" and itself.
std::string tensorOf(const std::string& verdictName);

/// Gathers verdicts on tensors for a report.
class Verdicts {
 public:
  void add(TensorVerdict verdict);
  /// What no tolerance covers.
  void fail(const std::string& name, std::string reason);
  /// Of tensors that were compared bit for bit: only a failure is worth a row.
  void markCompared(const std::string& name) { compared_.insert(tensorOf(name)); }

  bool compared(const std::string& name) const { return compared_.contains(tensorOf(name)); }
  /// Status, reason, worst tensor and lists of the report. `given`: all tensors of the run; those without a verdict are
  /// listed as not compared.
  void writeTo(CheckReport& report, const TensorMap& given) const;

 private:
  std::vector<TensorVerdict> verdicts_;
  std::set<std::string> compared_;
};

}  // namespace retrograd
