#pragma once
#include <QHash>
#include <QMap>
#include <QObject>
#include <QStringList>
#include <vector>

#include "core/judge/report.h"
#include "views/session/document_controller.h"

namespace retrograd::views {

/// All that is known of the open file, wherever it came from. Whoever judges something brings its report under a name
/// of its own and replaces it later; the verdict bar says what follows from all, the panel Findings shows each claim.
class FindingBoard : public QObject {
  Q_OBJECT

 public:
  /// That of this window; there from when it is asked for first. A document that goes takes all with it.
  static FindingBoard& of(DocumentController& controller);

  /// In place of what the source had brought. `command`: what judges the rest of what it says is not judged.
  void setReport(const QString& source, Report report, const QString& command = {});
  /// Claims alone; without any it has nothing to say any more.
  void set(const QString& source, std::vector<Claim> claims);

  struct Entry {
    QString source;
    Claim claim;
  };
  /// What was found, each thing once: by severity, then by source in the order of the alphabet, then as it was brought.
  std::vector<Entry> entries() const;
  /// All of it as one report.
  Report report() const;
  /// What each source judged: "122 ops whose results are finite".
  QStringList coverage() const;
  /// What judges the first thing that is not judged; empty where nobody knows.
  QString commandToJudge() const;
  bool isEmpty() const { return bySource_.isEmpty(); }
  bool has(const QString& source) const { return bySource_.contains(source); }
  /// The most severe finding that this op is marked with; null for none.
  const Claim* at(BoundSymbolId op) const { return op ? byOp_.value(op.index) : nullptr; }

 Q_SIGNALS:
  void changed();

 private:
  explicit FindingBoard(DocumentController& controller);
  void index();

  struct Brought {
    Report report;
    QString command;
  };
  QMap<QString, Brought> bySource_;
  QHash<int, const Claim*> byOp_;  ///< into bySource_
};

}  // namespace retrograd::views
