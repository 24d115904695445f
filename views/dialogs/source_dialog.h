#pragma once
#include <QComboBox>
#include <QDialog>
#include <QTableWidget>

#include "views/settings/source_paths.h"

namespace retrograd::views {

/// Where sources lie that were exported elsewhere, and the command of the editor.
class SourceDialog : public QDialog {
  Q_OBJECT

 public:
  SourceDialog(const SourcePaths& paths, const QString& editor, QWidget* parent);

  /// Rows without both sides are none.
  SourcePaths paths() const;
  QString editor() const { return editor_->currentText().trimmed(); }

 private:
  void addRow(const PathMapping& mapping);

  QTableWidget* table_;
  QComboBox* editor_;
};

}  // namespace retrograd::views
