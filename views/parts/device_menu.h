#pragma once
#include <QActionGroup>
#include <QMenu>

#include "views/session/view_context.h"

namespace retrograd::views {

/// Where the open model runs: the CPU or a GPU. A device that cannot be used is there too and says why. What there
/// is is asked of the engine once a file is open, on the worker, since asking a driver takes time.
class DeviceMenu : public QMenu {
  Q_OBJECT

 public:
  DeviceMenu(ViewContext context, QWidget* parent);

 private:
  void follow();
  void fill(const std::vector<DeviceStatus>& devices);
  void choose(const QAction* action);

  ViewContext context_;
  QActionGroup* group_;
  bool filled_ = false;
};

}  // namespace retrograd::views
