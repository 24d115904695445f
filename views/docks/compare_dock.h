#pragma once
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QToolButton>
#include <QTreeView>
#include <QWidget>

#include "views/models/compare_model.h"
#include "views/view_context.h"

namespace retrograd::views {

/// The run of what is open beside another one, op by op: in double precision, with another seed, with other weights, or of another file.
class CompareDock : public QWidget {
  Q_OBJECT

 public:
  enum class Against { doublePrecision, seed, weights, file };

  /// The action is shown as a button; who owns it calls compare().
  CompareDock(ViewContext context, QAction* compare, QWidget* parent = nullptr);

  /// Opens the counterpart and runs both, on the worker.
  void compare();
  QString summary() const { return summary_->text(); }

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);

 private:
  QWidget* makeLine(QAction* compare);
  void againstChanged();
  void browse();
  void clear();
  void show(const std::shared_ptr<const RunComparison>& comparison);
  Against against() const;
  /// What is to be compared with; a text that says what is missing where the line does not tell.
  QString counterpart(Counterpart& other) const;

  ViewContext context_;
  CompareModel* model_;
  QTreeView* table_;
  QComboBox* against_;
  QLineEdit* what_;
  QToolButton* browse_;
  QLineEdit* tolerance_;
  QLabel* summary_;
  QToolButton* first_;
};

}  // namespace retrograd::views
