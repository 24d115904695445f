#pragma once
#include <QDialog>
#include <QLabel>
#include <QTreeWidget>

#include "views/session/view_context.h"

namespace retrograd::views {

/// A value as it was at an op.
struct ValuePlace {
  BoundSymbolId op;
  ValueId value;
  bool operator==(const ValuePlace&) const = default;
};

/// Two values side by side, and how far they are from one another, element by element.
class CompareValuesDialog : public QDialog {
  Q_OBJECT

 public:
  CompareValuesDialog(ViewContext context, ValuePlace a, ValuePlace b, QWidget* parent);
  QString summary() const { return summary_->text(); }

 private:
  struct Answer;
  void show(const Answer& answer);

  ViewContext context_;
  ValuePlace a_, b_;
  QLabel* summary_;
  QTreeWidget* table_;
};

}  // namespace retrograd::views
