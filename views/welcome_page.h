#pragma once
#include <QBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QWidget>

#include "views/recent_files.h"

namespace retrograd::views {

/// Stands in place of the listings while no file is open: how to open one, and those opened lately.
class WelcomePage : public QWidget {
  Q_OBJECT

 public:
  WelcomePage(RecentFiles* recent, QAction* open, QWidget* parent = nullptr);

 Q_SIGNALS:
  void chosen(const QString& path);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void fill();

  RecentFiles* recent_;
  QVBoxLayout* list_;
};

}  // namespace retrograd::views
