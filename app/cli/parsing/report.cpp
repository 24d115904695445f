#include "app/cli/parsing/report.h"

#include <fmt/format.h>

#include "app/cli/parsing/output.h"
#include "app/cli/parsing/terminal.h"
#include "core/base/enum_array.h"

namespace retrograd::cli {
namespace {

Style styleOf(Severity severity) {
  return severity == Severity::fault ? Style::bad : severity == Severity::suspicion ? Style::warning : Style::good;
}

}  // namespace

void printReport(const Report& report, const Decision& decision, bool brief) {
  static constexpr EnumArray<Verdict, Style, 3> styles{Style::good, Style::bad, Style::warning};
  if (terminal().quiet && decision.verdict == Verdict::pass) return;
  clearProgress();
  const auto word = name(decision.verdict);
  fmt::print("{}{}\n", styled(stdout, styles[decision.verdict], word),
             verdictLine(report, decision).substr(word.size()));
  for (const auto& line : detailLines(report, brief)) {
    const auto colon = line.severity >= Severity::suspicion ? line.text.find(':') : 0;
    fmt::print("      {}{}\n", colon > 0 ? styled(stdout, styleOf(line.severity), line.text.substr(0, colon)) : "",
               line.text.substr(colon));
  }
  flushOutput();
}

}  // namespace retrograd::cli
