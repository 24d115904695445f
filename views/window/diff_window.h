#pragma once
#include <QCheckBox>
#include <QLabel>
#include <QPlainTextEdit>
#include <QWidget>
#include <map>

#include "views/canvases/diff_view.h"
#include "views/engine/pool_job.h"
#include "views/session/view_context.h"
#include "views/widgets/trace_chooser.h"

namespace retrograd::views {

/// Two traces side by side in a window of its own: before and after a pass, under another partition, of another file,
/// of two kinds. A trace is derived or read, if need be, on the worker, aligned on the pool. The op under the cursor is
/// the selected one where it belongs to the open document, and the other way round.
class DiffWindow : public QWidget {
  Q_OBJECT

 public:
  DiffWindow(ViewContext context, QWidget* parent);

  /// Shows the window and compares what is chosen.
  void open();
  /// Compares what is open with what another view has derived of it.
  void compareWith(std::shared_ptr<const Analysis> tried, const QString& title);
  /// What was derived is discarded: it is no longer among what can be compared.
  void dropTried();
  /// Compares what is chosen now.
  void compare();

  DiffView& view() const { return *view_; }
  TraceChooser& chooser(Side side) const { return *(side == Side::left ? left_ : right_); }
  QString summary() const { return summary_->text(); }
  /// What is said of the row under the cursor.
  QString details() const { return details_->toPlainText(); }
  bool busy() const { return busy_ || job_->busy(); }

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  /// What is behind a source, once derived or read.
  struct Found {
    std::shared_ptr<const Analysis> analysis;
    std::shared_ptr<const PassTraces> passes;
  };
  QWidget* makeChoices();
  QWidget* makeTools();
  void documentChanged();
  void selectionChanged();
  void swap();
  void cancel();
  /// Esc: cancels what is in progress, else closes.
  void cancelOrLeave() { busy() ? cancel() : hide(); }
  void say(const QString& message);
  static Found find(const TraceSource& source, const QuestionContext& context, const Progress& progress);
  /// The trace of a side, where all that it needs is there. Throws Error(badUse) where it has no such trace.
  ComparedTrace traceFor(const TraceChooser& chooser) const;
  void align();
  void shown(const std::shared_ptr<const Comparison>& comparison);
  void cursorMoved();
  void updateDetails();
  static QString keyOf(const TraceSource& source);

  ViewContext context_;
  TraceChooser* left_;
  TraceChooser* right_;
  DiffView* view_;
  QLabel* summary_;
  QLabel* place_;
  QCheckBox* onlyDifferences_;
  QAction* next_;
  QAction* previous_;
  QPlainTextEdit* details_;
  PoolJob* job_;
  std::map<QString, Found> found_;  ///< by source
  std::shared_ptr<const Analysis> tried_;
  QString triedTitle_;
  bool busy_ = false;           ///< the worker derives or reads
  std::uint64_t question_ = 0;  ///< number of the newest one
  bool stale_ = true;           ///< the document changed while the window was hidden
  bool selecting_ = false;      ///< the selection changes because of this window
};

}  // namespace retrograd::views
