#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "core/formats/jobs/differentiated.h"
#include "core/judge/report.h"

namespace retrograd {

/// Gradients of which not the derived ones say what is right, but those of the joint graph; by their labels.
struct Witnessed {
  std::vector<std::string> explained;  ///< they are the joint graph's, and not the derived ones; with what differs
  std::vector<std::string> unknown;    ///< only a joint graph could say them, and there is none
  std::vector<std::string> byJoint;    ///< compared with the joint graph's where the derived ones are not finite
  std::vector<std::string> undefined;  ///< they would have to be, and there is no joint graph

  /// What they mean for the verdict: a note, or what was not judged and why. `gradients`: how many there are.
  void settle(const Differentiated& forward, std::size_t gradients, Report& report) const;

 private:
  void settleExplained(const Differentiated& forward, Report& report) const;
  void settleUndefined(Report& report) const;
};

}  // namespace retrograd
