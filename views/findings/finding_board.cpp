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
    Q_EMIT changed();
  });
}

void FindingBoard::set(const QString& source, std::vector<Finding> findings) {
  if (findings.empty() && !bySource_.contains(source)) return;
  if (findings.empty()) bySource_.remove(source);
  else bySource_[source] = std::move(findings);
  Q_EMIT changed();
}

std::vector<FindingBoard::Entry> FindingBoard::entries() const {
  std::vector<Entry> all;
  for (auto source = bySource_.begin(); source != bySource_.end(); ++source)
    for (const auto& finding : source.value()) all.push_back({source.key(), finding});
  std::stable_sort(all.begin(), all.end(),
                   [](const Entry& a, const Entry& b) { return a.finding.severity > b.finding.severity; });
  return all;
}

int FindingBoard::serious() const {
  const auto all = entries();
  return static_cast<int>(std::count_if(
      all.begin(), all.end(), [](const Entry& entry) { return entry.finding.severity > Finding::Severity::note; }));
}

}  // namespace retrograd::views
