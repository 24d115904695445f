#pragma once
#include <QStandardItemModel>
#include <QTreeView>

#include "core/questions/compare_numbers.h"
#include "views/docks/panel.h"

namespace retrograd::views {

/// The norms that PyTorch's DebugMode recorded in a job next to those of the open model, op by op; what `retrograd
/// numbers` prints.
class DebugModeDock : public Panel {
  Q_OBJECT

 public:
  enum Column { op, recorded, replayed, relative, line, columnCount };

  explicit DebugModeDock(ViewContext context, QWidget* parent = nullptr);

  /// Reads the recording and runs the model, on the worker.
  Q_INVOKABLE void load(const QString& path);
  /// Chooses the first row that differs, from then on the next one, and shows its op. After the last comes the first.
  void nextDifference();
  /// Why there is none to go to; empty where there is one.
  QString noDifference() const;
  QString summary() const { return summary_->text(); }

 Q_SIGNALS:
  void changed();

 protected:
  void forget() override;
  QString emptyText() const override;

 private:
  struct Answer {
    DebugModeRun recorded, replayed;
    NumberComparison comparison;
    std::vector<BoundSymbolId> ops;  ///< of the replayed calls
    std::vector<QString> names;      ///< of the replayed calls
  };

  void show(const Answer& answer);
  void choose(int difference);

  QStandardItemModel* model_;
  QTreeView* table_;
  QLabel* summary_;
  std::vector<int>
      differences_;  ///< rows of the model: the op where the difference begins, then all whose norms differ
  int chosen_ = -1;  ///< into differences_
};

}  // namespace retrograd::views
