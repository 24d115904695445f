#include <QActionGroup>
#include <QMenu>

#include "views/session/view_context.h"
#include "views/text/format.h"
#include "views/window/window_part.h"

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

namespace {

const WindowPart deviceMenuPart(PartOrder::deviceMenu, [](MainWindow& window) {
  auto* run = window.menu("run");
  run->addSeparator();
  run->addMenu(new DeviceMenu(window.context(), run));
});

}  // namespace

DeviceMenu::DeviceMenu(ViewContext context, QWidget* parent)
    : QMenu(tr("Run O&n"), parent), context_(context), group_(new QActionGroup(this)) {
  setObjectName(QStringLiteral("devices"));
  setToolTipsVisible(true);
  menuAction()->setEnabled(false);
  menuAction()->setToolTip(tr("No file is open"));
  connect(context_.controller, &DocumentController::documentChanged, this, &DeviceMenu::follow);
  connect(group_, &QActionGroup::triggered, this, &DeviceMenu::choose);
}

void DeviceMenu::follow() {
  const auto& document = context_.controller->document();
  menuAction()->setEnabled(document != nullptr);
  menuAction()->setToolTip(document ? tr("Chooses the device; the model is derived again for it")
                                    : tr("No file is open"));
  if (!document) return;
  for (auto* action : group_->actions())
    action->setChecked(action->data().toString() == toQt(toString(document->analysis->device)));
  if (filled_) return;
  // Once more for each document until it is answered: of a document that goes, no answer comes.
  context_.controller->questions().ask(this, QStringLiteral("devices"), {},
                                       [this](const QuestionContext& context, const Progress&) -> Worker::Deliver {
                                         return [this, devices = context.engine.devices()] { fill(devices); };
                                       });
}

void DeviceMenu::fill(const std::vector<DeviceStatus>& devices) {
  filled_ = true;
  for (const auto& status : devices) {
    const auto device = toQt(toString(status.device));
    auto* action =
        group_->addAction(status.name.empty() ? device.toUpper() : tr("%1 (%2)").arg(toQt(status.name), device));
    action->setObjectName(QStringLiteral("action-device-") + device);
    action->setCheckable(true);
    action->setData(device);
    action->setEnabled(status.available);
    const auto tip = status.available ? tr("Runs forward and backward on %1").arg(device) : toQt(status.reason);
    action->setToolTip(tip);
    action->setStatusTip(tip);
    addAction(action);
  }
  follow();
}

void DeviceMenu::choose(const QAction* action) {
  const auto& document = context_.controller->document();
  if (!document) return;
  auto request = document->request;
  request.device = deviceFromString(action->data().toString().toStdString());
  context_.controller->reopen(request);
}

}  // namespace retrograd::views

#include "device_menu.moc"
