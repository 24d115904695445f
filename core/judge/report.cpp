#include "core/judge/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/enum_array.h"

namespace retrograd {
namespace {

constexpr EnumArray<Producer, std::string_view, 16> producerNames{
    "reference",   "double reference", "eager",  "eager again", "cpu",    "split", "session", "job backward",
    "joint graph", "derivative",       "replay", "books",       "stages", "rank",  "run",     "health"};
constexpr EnumArray<Severity, std::string_view, 4> severityNames{"holds", "note", "suspicion", "fault"};
constexpr EnumArray<Verdict, std::string_view, 3> verdictNames{"pass", "fail", "not possible"};

const Claim* firstOf(const Report& report, Severity severity) {
  const auto found = std::ranges::find(report.claims, severity, &Claim::severity);
  return found == report.claims.end() ? nullptr : &*found;
}

std::string reasonOf(const NotJudged& one) {
  return one.subject.empty() ? one.reason : one.subject + ": " + one.reason;
}

/// "gradient that an optimizer read" -> "gradients that an optimizer read"
std::string counted(std::size_t n, const std::string& unit) {
  if (n == 1) return unit;
  const auto word = unit.find(' ');
  return word == std::string::npos ? unit + "s" : unit.substr(0, word) + "s" + unit.substr(word);
}

}  // namespace

std::string_view name(Producer producer) { return producerNames[producer]; }
std::string_view name(Severity severity) { return severityNames[severity]; }
std::string_view name(Verdict verdict) { return verdictNames[verdict]; }

double Measure::ratio() const {
  if (!failure.empty()) return std::numeric_limits<double>::infinity();
  if (deviation == 0) return 0;
  return tolerance > 0 ? deviation / tolerance : std::numeric_limits<double>::infinity();
}

Decision decide(const Report& report, bool strict) {
  const auto* claim = firstOf(report, Severity::fault);
  if (!claim && strict) claim = firstOf(report, Severity::suspicion);
  if (claim) return {Verdict::fail, claim, textOf(*claim)};
  if (!report.notJudged.empty()) {
    auto reason = reasonOf(report.notJudged.front());
    if (const auto more = report.notJudged.size() - 1; more > 0) reason += fmt::format("; and {} more", more);
    return {Verdict::notPossible, nullptr, reason};
  }
  if (report.judged == 0) return {Verdict::notPossible, nullptr, "nothing was compared"};
  return {Verdict::pass, nullptr, {}};
}

int exitCode(Verdict verdict) { return verdict == Verdict::pass ? 0 : verdict == Verdict::fail ? 1 : 2; }

int worstExitCode(const std::vector<Verdict>& verdicts) {
  if (std::ranges::find(verdicts, Verdict::fail) != verdicts.end()) return exitCode(Verdict::fail);
  if (std::ranges::find(verdicts, Verdict::notPossible) != verdicts.end()) return exitCode(Verdict::notPossible);
  return exitCode(Verdict::pass);
}

std::string namesText(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 2;
  if (names.empty()) return {};
  if (names.size() == 1) return names[0];
  if (names.size() == shown) return names[0] + " and " + names[1];
  return fmt::format("{}, {} and {} more", names[0], names[1], names.size() - shown);
}

std::string textOf(const Claim& claim) {
  auto text = claim.sentence;
  if (!claim.line.empty()) text += "; " + claim.line;
  if (!claim.parameters.empty()) text += "; behind it: " + namesText(claim.parameters);
  return text;
}

std::string coverageText(const Report& report) {
  const auto due = std::max(report.due, report.judged);
  if (due == report.judged) return fmt::format("{} {}", due, counted(due, report.unit));
  return fmt::format("{} of {} {}", report.judged, due, counted(due, report.unit));
}

std::vector<ReportLine> detailLines(const Report& report, bool brief) {
  std::vector<ReportLine> lines;
  for (const auto severity : {Severity::fault, Severity::suspicion, Severity::note}) {
    if (brief && severity == Severity::note) continue;
    for (const auto& claim : report.claims) {
      if (claim.severity != severity) continue;
      lines.push_back({severity, fmt::format("{}: {}", name(severity), textOf(claim))});
      if (!claim.remedy.empty()) lines.push_back({Severity::holds, "  what to do: " + claim.remedy});
    }
  }
  if (!report.unit.empty() && !brief) lines.push_back({Severity::holds, "judged: " + coverageText(report)});
  for (const auto& one : report.notJudged) lines.push_back({Severity::note, "not judged: " + reasonOf(one)});
  if (!brief)
    for (const auto& note : report.notes) lines.push_back({Severity::holds, "note: " + note});
  return lines;
}

}  // namespace retrograd
