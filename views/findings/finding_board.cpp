#include "views/findings/finding_board.h"

#include <algorithm>

namespace retrograd::views {

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

void FindingBoard::set(const QString& source, std::vector<Claim> findings) {
  if (findings.empty() && !bySource_.contains(source)) return;
  if (findings.empty()) bySource_.remove(source);
  else bySource_[source] = std::move(findings);
  index();
  Q_EMIT changed();
}

void FindingBoard::index() {
  byOp_.clear();
  const auto add = [this](BoundSymbolId op, const Claim& finding) {
    if (!op) return;
    auto& known = byOp_[op.index];
    if (!known || known->severity < finding.severity) known = &finding;
  };
  for (const auto& findings : std::as_const(bySource_))
    for (const auto& finding : findings) {
      add(finding.op, finding);
      for (const auto op : finding.also) add(op, finding);
    }
}

std::vector<FindingBoard::Entry> FindingBoard::entries() const {
  std::vector<Entry> all;
  for (auto source = bySource_.begin(); source != bySource_.end(); ++source)
    for (const auto& finding : source.value()) all.push_back({source.key(), finding});
  std::ranges::stable_sort(all, [](const Entry& a, const Entry& b) { return a.claim.severity > b.claim.severity; });
  return all;
}

}  // namespace retrograd::views
