#include "core/judge/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "core/base/enum_array.h"

namespace retrograd {
namespace {

constexpr EnumArray<Producer, std::string_view, 16> producerNames{
    "reference",   "double reference", "eager",  "eager again", "cpu",    "split", "session", "job backward",
    "joint graph", "derivative",       "replay", "books",       "stages", "rank",  "run",     "health"};
constexpr EnumArray<Severity, std::string_view, 4> severityNames{"holds", "note", "suspicion", "fault"};
constexpr EnumArray<Verdict, std::string_view, 3> verdictNames{"pass", "fail", "not possible"};

constexpr double noisyShare = 0.01;
constexpr std::size_t mostOfAKind = 10;

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

Measure Measure::failed(std::string why) { return {std::numeric_limits<double>::infinity(), 0, 0, std::move(why), {}}; }

bool Measure::tooNoisy() const { return tolerance > noisyShare * scale; }

std::string textOf(const Measure& measure) {
  if (!measure.failure.empty()) return measure.failure;
  return fmt::format("off by {:.3g}, tolerance {:.3g}, largest element {:.3g}", measure.deviation, measure.tolerance,
                     measure.scale);
}

Claim claimOf(Producer by, std::string subject, Measure measure) {
  Claim claim{.by = by, .kind = "tensor", .subject = std::move(subject)};
  if (measure.good()) claim.severity = Severity::holds;
  else claim.sentence = fmt::format("{} ({}): {}", claim.subject, name(by), textOf(measure));
  claim.measure = std::move(measure);
  return claim;
}

void worstFirst(std::vector<Claim>& claims) {
  const auto weight = [](const Claim& c) { return std::pair(c.severity, c.measure ? c.measure->ratio() : 0); };
  std::ranges::stable_sort(claims, std::greater(), weight);
}

Report reportOfError(std::string subject, std::string what) {
  Report report{.subject = std::move(subject)};
  report.claims.push_back({.by = Producer::session, .kind = "error", .sentence = std::move(what)});
  return report;
}

Report reportOfRefusal(std::string subject, std::string why) {
  Report report{.subject = std::move(subject)};
  report.notJudged.push_back({{}, std::move(why)});
  return report;
}

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

std::string summary(const std::vector<Verdict>& verdicts) {
  return fmt::format("{} passed, {} failed, {} not possible", std::ranges::count(verdicts, Verdict::pass),
                     std::ranges::count(verdicts, Verdict::fail), std::ranges::count(verdicts, Verdict::notPossible));
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

const Claim* furthest(const Report& report) {
  const Claim* worst = nullptr;
  for (const auto& claim : report.claims)
    if (claim.measure && claim.measure->ratio() > (worst ? worst->measure->ratio() : 0)) worst = &claim;
  return worst;
}

std::string verdictLine(const Report& report, const Decision& decision) {
  auto line = fmt::format("{:<4}  {:<30}  ", name(decision.verdict), report.subject);
  if (decision.verdict != Verdict::pass) return line + decision.reason;
  const auto isMeasured = [](const Claim& claim) { return claim.measure.has_value(); };
  if (const auto* worst = furthest(report))
    line += fmt::format("furthest {} ({}): {}", worst->subject, name(worst->by), textOf(*worst->measure));
  else line += std::ranges::any_of(report.claims, isMeasured) ? "equal" : coverageText(report);
  std::set<std::string> noisy;
  for (const auto& claim : report.claims)
    if (claim.measure && claim.measure->tooNoisy()) noisy.insert(claim.subject);
  return noisy.empty() ? line : fmt::format("{}; {} too noisy", line, noisy.size());
}

std::vector<ReportLine> detailLines(const Report& report, bool brief) {
  std::vector<ReportLine> lines;
  std::map<std::string, std::size_t> ofKind;
  const auto isShown = [&](const std::string& kind) { return kind.empty() || ++ofKind[kind] <= mostOfAKind; };
  for (const auto severity : {Severity::fault, Severity::suspicion, Severity::note}) {
    if (brief && severity == Severity::note) continue;
    for (const auto& claim : report.claims) {
      if (claim.severity != severity || !isShown(claim.kind)) continue;
      lines.push_back({severity, fmt::format("{}: {}", name(severity), textOf(claim))});
      if (!claim.remedy.empty()) lines.push_back({Severity::holds, "  what to do: " + claim.remedy});
    }
    for (auto& [kind, count] : ofKind)
      if (const auto all = std::exchange(count, 0); all > mostOfAKind)
        lines.push_back({severity, fmt::format("{}: {} more of the kind {}", name(severity), all - mostOfAKind, kind)});
  }
  if (!report.unit.empty() && !brief) lines.push_back({Severity::holds, "judged: " + coverageText(report)});
  for (const auto& one : report.notJudged)
    if (isShown("not judged")) lines.push_back({Severity::note, "not judged: " + reasonOf(one)});
  if (report.notJudged.size() > mostOfAKind)
    lines.push_back({Severity::note, fmt::format("not judged: {} more", report.notJudged.size() - mostOfAKind)});
  for (const auto& note : report.notes) lines.push_back({Severity::holds, "note: " + note});
  return lines;
}

}  // namespace retrograd
