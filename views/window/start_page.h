#pragma once
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>

#include "views/settings/samples.h"
#include "views/window/recent_files.h"

namespace retrograd::views {

/// A button that says what it opens: a title and a line or two below it.
class SampleCard : public QPushButton {
  Q_OBJECT

 public:
  explicit SampleCard(const Sample& sample, QWidget* parent = nullptr);
  QSize sizeHint() const override;

 private:
  QVBoxLayout* column_;
};

/// Takes the place of the listings while no file is open: what the program is for, the tour, files to open, samples,
/// and lines to copy that record a step or bring one from another machine.
class StartPage : public QScrollArea {
  Q_OBJECT

 public:
  /// The keys of `hints` are named on the page.
  StartPage(RecentFiles* recent, QAction* open, const QList<QAction*>& hints, QWidget* parent = nullptr);

 Q_SIGNALS:
  void chosen(const QString& path);
  /// Comes before chosen().
  void sampleChosen(const Sample& sample);
  void tourWanted();

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  QPushButton* button(const QString& text, const QString& name);
  void addFirstButtons(QVBoxLayout* column, QAction* open);
  void addSamples(QVBoxLayout* column);
  void addRecording(QVBoxLayout* column);
  /// How the label of lines and its button are called in tests, and by a screen reader.
  struct LinesNames {
    QString object, spoken;
  };
  void addLines(QVBoxLayout* column, const QString& title, const QString& says, const QString& lines,
                const LinesNames& names);
  void fill();

  RecentFiles* recent_;
  QWidget* page_;
  QWidget* beforeRecent_ = nullptr;  ///< in the order of Tab
  QLabel* recentTitle_;
  QVBoxLayout* list_;
};

}  // namespace retrograd::views
