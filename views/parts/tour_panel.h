#pragma once
#include <QFrame>
#include <QLabel>
#include <QPushButton>

#include "views/session/tour.h"

namespace retrograd::views {

class MainWindow;

/// A strip over the listings that shows the step of the tour at hand; hidden while there is no tour. It covers nothing
/// and takes no focus by itself.
class TourPanel : public QFrame {
  Q_OBJECT

 public:
  explicit TourPanel(MainWindow& window);

  Tour& tour() { return tour_; }
  /// In this window where nothing but the tour's sample is open or would be; else in a new one.
  void startOnSample();
  QString title() const { return title_->text(); }

 private:
  void follow();
  /// Opens what the step needs to be seen.
  void prepare();
  QString titleOf(Tour::Step stop) const;
  QString textOf(Tour::Step stop) const;
  /// "F10", or where it has no key the command's name.
  QString keyOf(const QAction* action) const;

  MainWindow& window_;
  Tour tour_;
  bool waiting_ = false;  ///< for the sample to be opened
  QLabel *number_, *title_, *text_;
  QPushButton *skip_, *again_, *end_;
};

}  // namespace retrograd::views
