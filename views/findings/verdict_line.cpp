#include "views/findings/verdict_line.h"

#include "core/judge/report.h"
#include "views/text/format.h"

namespace retrograd::views {

Light lightOf(Severity severity) {
  switch (severity) {
    case Severity::fault: return Light::fault;
    case Severity::suspicion: return Light::suspicion;
    case Severity::note: return Light::unknown;
    case Severity::holds: break;
  }
  return Light::good;
}

QString wordOf(Light light) {
  switch (light) {
    case Light::fault: return tr("Fault");
    case Light::suspicion: return tr("Suspicion");
    case Light::good: return tr("Good");
    case Light::unknown: break;
  }
  return tr("Not judged");
}

VerdictLine verdictLine(const FindingBoard& board) {
  VerdictLine line;
  const auto report = board.report();
  const auto decision = decide(report, true);
  line.more = report.claims.size();
  switch (decision.verdict) {
    case Verdict::fail:
      line.light = lightOf(decision.claim->severity);
      line.claim = *decision.claim;
      line.sentence = toQt(decision.claim->sentence);
      --line.more;
      break;
    case Verdict::notPossible:
      line.sentence = tr("Not judged yet: %1").arg(toQt(decision.reason));
      line.command = board.commandToJudge();
      break;
    case Verdict::pass:
      line.light = Light::good;
      line.sentence = tr("Good so far: %1").arg(board.coverage().join(QStringLiteral(", ")));
      break;
  }
  return line;
}

}  // namespace retrograd::views
