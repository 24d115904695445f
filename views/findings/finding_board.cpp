#include "views/findings/finding_board.h"

#include <algorithm>

#include "views/text/format.h"

namespace retrograd::views {
namespace {

/// Two sources that came upon the same.
bool isSame(const Claim& a, const Claim& b) { return a.op == b.op && a.sentence == b.sentence; }

}  // namespace

FindingBoard& FindingBoard::of(DocumentController& controller) {
  if (auto* board = controller.findChild<FindingBoard*>({}, Qt::FindDirectChildrenOnly)) return *board;
  return *new FindingBoard(controller);
}

FindingBoard::FindingBoard(DocumentController& controller) : QObject(&controller) {
  connect(&controller, &DocumentController::documentAboutToChange, this, [this] {
    bySource_.clear();
    index();
    Q_EMIT changed();
  });
}

void FindingBoard::setReport(const QString& source, Report report, const QString& command) {
  const bool isNothing = report.claims.empty() && report.notJudged.empty() && report.judged == 0;
  if (isNothing && !bySource_.contains(source)) return;
  if (isNothing) bySource_.remove(source);
  else bySource_[source] = {std::move(report), command};
  index();
  Q_EMIT changed();
}

void FindingBoard::set(const QString& source, std::vector<Claim> claims) {
  Report report;
  report.claims = std::move(claims);
  setReport(source, std::move(report));
}

void FindingBoard::index() {
  byOp_.clear();
  const auto add = [this](BoundSymbolId op, const Claim& claim) {
    if (!op) return;
    auto& known = byOp_[op.index];
    if (!known || known->severity < claim.severity) known = &claim;
  };
  for (const auto& brought : std::as_const(bySource_))
    for (const auto& claim : brought.report.claims) {
      if (claim.severity == Severity::holds) continue;
      add(claim.op, claim);
      for (const auto op : claim.also) add(op, claim);
    }
}

std::vector<FindingBoard::Entry> FindingBoard::entries() const {
  std::vector<Entry> all;
  for (auto source = bySource_.begin(); source != bySource_.end(); ++source)
    for (const auto& claim : source.value().report.claims)
      if (claim.severity != Severity::holds) all.push_back({source.key(), claim});
  std::ranges::stable_sort(all, [](const Entry& a, const Entry& b) { return a.claim.severity > b.claim.severity; });
  std::vector<Entry> once;
  for (auto& entry : all) {
    const auto same = [&](const Entry& other) { return isSame(other.claim, entry.claim); };
    if (std::ranges::none_of(once, same)) once.push_back(std::move(entry));
  }
  return once;
}

Report FindingBoard::report() const {
  Report all;
  for (auto& entry : entries()) all.claims.push_back(std::move(entry.claim));
  for (const auto& brought : bySource_) {
    all.judged += brought.report.judged;
    all.due += brought.report.due;
    all.notJudged.insert(all.notJudged.end(), brought.report.notJudged.begin(), brought.report.notJudged.end());
  }
  return all;
}

QStringList FindingBoard::coverage() const {
  QStringList texts;
  for (const auto& brought : bySource_)
    if (brought.report.judged > 0 && !brought.report.unit.empty()) texts << toQt(coverageText(brought.report));
  return texts;
}

QString FindingBoard::commandToJudge() const {
  for (const auto& brought : bySource_)
    if (!brought.report.notJudged.empty() && !brought.command.isEmpty()) return brought.command;
  return {};
}

}  // namespace retrograd::views
