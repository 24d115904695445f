#pragma once
#include <QLabel>
#include <QProgressBar>
#include <QTimer>
#include <QToolButton>
#include <QWidget>

#include "views/session/document_controller.h"

namespace retrograd::views {

/// What the worker does for this window, in the status bar: name of the step or op, progress and Cancel. Shows after
/// 100 ms only.
class BusyPanel : public QWidget {
  Q_OBJECT

 public:
  BusyPanel(DocumentController* controller, QWidget* parent = nullptr);
  QString text() const { return text_->text(); }

 private:
  void begin(const QString& title);
  void end();

  DocumentController* controller_;
  QLabel* text_;
  QProgressBar* bar_;
  QToolButton* cancel_;
  QTimer delay_;
  QString title_, tag_;
};

}  // namespace retrograd::views
