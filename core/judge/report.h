#pragma once
// The one judge: what all producers claim of one subject, what follows from it, and how it is said.
#include <cstddef>
#include <map>
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
  std::vector<std::string> notes;         ///< for people: what bears on the verdict and is no claim
  std::map<std::string, double> details;  ///< counts and times: "backward_ops", "seconds"
};

/// Of a check that went wrong itself: it crashed, took too long or threw. The fault has the kind "error".
Report reportOfError(std::string subject, std::string what);
/// Of what could not be judged at all.
Report reportOfRefusal(std::string subject, std::string why);

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
/// "62 passed, 0 failed, 1 not possible"
std::string summary(const std::vector<Verdict>& verdicts);

/// "h.weight and 3 more": two names at most, the rest counted.
std::string namesText(const std::vector<std::string>& names);
/// The claim in one line: sentence, place, whose gradients. The same wherever it is shown.
std::string textOf(const Claim& claim);
/// "12 of 14 gradients that an optimizer read"; "7 tensors" where all were due.
std::string coverageText(const Report& report);

/// The claim with the tensor that is furthest beyond its tolerance, or nearest to it; null where nothing deviates.
const Claim* furthest(const Report& report);
/// "pass  mlp  furthest grad.p.w (eager): off by 1.2e-09, tolerance 4.5e-08, largest element 3; 1 too noisy"; how much
/// was judged where nothing was measured; the reason where it is no pass.
std::string verdictLine(const Report& report, const Decision& decision);

/// A line of the text form, with what colours it.
struct ReportLine {
  Severity severity = Severity::holds;
  std::string text;
};
/// The claims worth a line, the worst first, each with its remedy; what was judged and what was not; notes.
/// `brief`: without claims that are notes and without what was judged. Of many claims of one kind the first ones are
/// shown.
std::vector<ReportLine> detailLines(const Report& report, bool brief = false);

/// docs/report.schema.json
nlohmann::ordered_json toJson(const Report& report, const Decision& decision);
/// The report that toJson() wrote; ids of ops and values are kept. Throws Error(badInput) for anything else.
Report reportFromJson(const nlohmann::ordered_json& json);

}  // namespace retrograd
