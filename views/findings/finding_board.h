#pragma once
#include <QHash>
#include <QMap>
#include <QObject>
#include <QString>
#include <vector>

#include "core/judge/claim.h"
#include "views/session/document_controller.h"

namespace retrograd::views {

/// All that was found in the open document, wherever it came from. Whoever finds something brings its findings under a
/// name of its own and replaces them later; the panel Findings shows them all, the most severe first.
class FindingBoard : public QObject {
  Q_OBJECT

 public:
  /// That of this window; there from when it is asked for first. It is empty while no document is open.
  static FindingBoard& of(DocumentController& controller);

  /// In place of what the source had brought; without findings it has none any more.
  void set(const QString& source, std::vector<Claim> findings);

  struct Entry {
    QString source;
    Claim claim;
  };
  /// By severity, then by source in the order of the alphabet, then as it was brought.
  std::vector<Entry> entries() const;
  bool has(const QString& source) const { return bySource_.contains(source); }
  /// The most severe finding that this op is marked with; null for none.
  const Claim* at(BoundSymbolId op) const { return op ? byOp_.value(op.index) : nullptr; }

 Q_SIGNALS:
  void changed();

 private:
  explicit FindingBoard(DocumentController& controller);
  void index();

  QMap<QString, std::vector<Claim>> bySource_;
  QHash<int, const Claim*> byOp_;  ///< into bySource_
};

}  // namespace retrograd::views
