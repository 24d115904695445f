#pragma once
#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSettings>
#include <functional>
#include <optional>

#include "core/base/enum_array.h"
#include "views/canvases/graph_export.h"
#include "views/engine/pool_job.h"
#include "views/session/view_context.h"

namespace retrograd::views {

/// Writes what is open to a file in any of the formats there are. Runs off the UI thread, with progress and Cancel,
/// while the window goes on; what is written appears whole or not at all.
class ExportDialog : public QDialog {
  Q_OBJECT

 public:
  /// The graph as a view shows it; nothing where none shows this trace.
  using ShownGraph = std::function<std::optional<GraphSheet>(TraceKind kind, bool dark)>;

  ExportDialog(ViewContext context, QSettings* settings, ShownGraph shownGraph, QWidget* parent);

  void choose(const QString& format, const QList<TraceKind>& traces, const QString& path);
  void start();
  void cancel();
  bool busy() const { return measuring_ || job_->busy(); }
  QString message() const { return message_->text(); }

 Q_SIGNALS:
  void exported(const QString& path);

 protected:
  void reject() override;

 private:
  enum class Groups { shown, opening, all };
  QWidget* makeTraces();
  QWidget* makeDrawing();
  QWidget* makePath();
  void documentChanged();
  void formatChanged();
  void traceToggled(TraceKind kind, bool on);
  void browse();
  void updateState();
  void say(const QString& text, bool isProblem);
  const ExportFormat& format() const;
  std::vector<TraceKind> traces() const;
  QString suffix() const;
  QString suggestedPath() const;
  void namePath(const QString& path);
  void followFormat();
  /// What is in the way; empty where nothing does.
  QString problem() const;
  void write(std::vector<OpMeasure> measures);
  void finished(const QString& path, const QString& problem);

  ViewContext context_;
  QSettings* settings_;
  ShownGraph shownGraph_;
  QComboBox* format_;
  QLabel* description_;
  EnumArray<TraceKind, QCheckBox*, 4> traces_{};  ///< by kind
  QWidget* drawing_;
  QComboBox* groups_ = nullptr;
  QComboBox* scale_ = nullptr;
  QCheckBox* dark_ = nullptr;
  QCheckBox* times_;
  QLineEdit* path_ = nullptr;
  QLabel* message_;
  QProgressBar* bar_;
  QPushButton* export_;
  QPushButton* close_;
  PoolJob* job_;
  QString suffix_;            ///< of the format that the path was made for
  std::string documentPath_;  ///< of the file that the choices are for
  bool namedPath_ = false;    ///< by someone, not suggested
  bool measuring_ = false;
};

}  // namespace retrograd::views
