#pragma once
// The one judge: what all producers claim of one subject, what follows from it, and how it is said.
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/judge/claim.h"

namespace retrograd {

/// What should have been judged and was not. It keeps a check from passing.
struct NotJudged {
  std::string subject;  ///< "h.weight"; "12 gradients"
  std::string reason;   ///< with the way out, where there is one
};

/// All that is known of one subject: a model, a recorded step, a job, a rank, a comparison.
struct Report {
  std::string subject;        ///< file or folder
  std::vector<Claim> claims;  ///< of one severity: the one that explains most first
  std::size_t judged = 0;     ///< how many were compared with what is expected of them
  std::size_t due = 0;        ///< of how many that had to be
  std::string unit;           ///< what is counted, one of them: "gradient that an optimizer read"
  std::vector<NotJudged> notJudged;
  std::vector<std::string> notes;  ///< for people: what bears on the verdict and is no claim
};

enum class Verdict : std::uint8_t { pass, fail, notPossible };
/// "pass", "fail", "not possible"
std::string_view name(Verdict);

struct Decision {
  Verdict verdict = Verdict::notPossible;
  const Claim* claim = nullptr;  ///< that decided; null for a pass and where something was not judged
  std::string reason;            ///< why it is no pass: the claim's sentence and line, or what was not judged and why
};

/// The only place that says pass, fail or not possible. A fault fails; with `strict` a suspicion does, too. What was
/// not judged, or nothing judged at all, is not possible. The report must outlive the decision.
Decision decide(const Report& report, bool strict = false);

/// 0 for a pass, 1 for a fault, 2 where it is not possible.
int exitCode(Verdict verdict);
/// Of several: 1 where one fails, else 2 where one is not possible, else 0.
int worstExitCode(const std::vector<Verdict>& verdicts);

/// "h.weight and 3 more": two names at most, the rest counted.
std::string namesText(const std::vector<std::string>& names);
/// The claim in one line: sentence, place, whose gradients. The same wherever it is shown.
std::string textOf(const Claim& claim);
/// "12 of 14 gradients that an optimizer read"; "7 tensors" where all were due.
std::string coverageText(const Report& report);

/// A line of the text form, with what colours it.
struct ReportLine {
  Severity severity = Severity::holds;
  std::string text;
};
/// The claims worth a line, the worst first, each with its remedy; what was judged and what was not; notes.
/// `brief`: faults and suspicions alone.
std::vector<ReportLine> detailLines(const Report& report, bool brief = false);

/// docs/report.schema.json
nlohmann::ordered_json toJson(const Report& report, const Decision& decision);
/// The report that toJson() wrote; ids of ops and values are kept. Throws Error(badInput) for anything else.
Report reportFromJson(const nlohmann::ordered_json& json);

}  // namespace retrograd
