#pragma once
#include <string>

#include "core/judge/report.h"

namespace retrograd::test {

inline Verdict verdictOf(const Report& report) { return decide(report).verdict; }

/// All that a report says to people, a line each.
inline std::string textOf(const Report& report) {
  auto text = verdictLine(report, decide(report));
  for (const auto& line : detailLines(report)) text += "\n" + line.text;
  return text;
}

/// The claim of this kind or producer about this subject; null where there is none.
inline const Claim* findClaim(const Report& report, const std::string& kind, const std::string& subject = {}) {
  for (const auto& claim : report.claims)
    if (claim.kind == kind && (subject.empty() || claim.subject == subject)) return &claim;
  return nullptr;
}
inline const Claim* findClaim(const Report& report, Producer by, const std::string& subject) {
  for (const auto& claim : report.claims)
    if (claim.by == by && claim.subject == subject) return &claim;
  return nullptr;
}

}  // namespace retrograd::test
