#pragma once
#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QSettings>

#include "views/session/view_context.h"

namespace retrograd::views {

/// "1 GiB", "300 KiB", "4096" in bytes; nullopt for anything else than an amount of memory.
std::optional<std::int64_t> bytesFromText(const QString& text);

/// What undo history may take, `retrograd debug --history` of the window: asked for here, kept in the settings, and
/// next to it how much is in use.
class HistoryMemoryDialog : public QDialog {
  Q_OBJECT

 public:
  HistoryMemoryDialog(ViewContext context, QSettings* settings, QWidget* parent = nullptr);

  /// What the settings say, else what a session takes of itself.
  static std::int64_t kept(const QSettings& settings);

  void accept() override;

 private:
  void askWhatIsUsed();

  ViewContext context_;
  QSettings* settings_;
  QComboBox* amount_;
  QLabel* used_;
  QLabel* problem_;
};

}  // namespace retrograd::views
