#include <QStatusBar>
#include <QTimer>
#include <QVBoxLayout>

#include "core/formats/files/deferred_check.h"
#include "views/session/view_context.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/window/window_part.h"

namespace retrograd::views {

/// Shows over the listings that the checksums of a large file's weights are still being compared, how far that is, and
/// what was found damaged. It asks every quarter of a second, which costs nothing, and never waits for the check.
class CheckNotice : public MessageBar {
  Q_OBJECT

 public:
  CheckNotice(ViewContext context, QLabel* status, QWidget* parent);

 private:
  void look();

  QLabel* status_;  ///< in the status bar
  QTimer timer_;
  QString shown_;
};

namespace {

const WindowPart checkNoticePart(PartOrder::checkNotice, [](MainWindow& window) {
  auto* status = named(new QLabel(window.statusBar()), "check-status");
  window.statusBar()->addPermanentWidget(status);
  auto* column = qobject_cast<QVBoxLayout*>(window.centralWidget()->layout());
  column->insertWidget(1, new CheckNotice(window.context(), status, window.centralWidget()));
});

}  // namespace

CheckNotice::CheckNotice(ViewContext context, QLabel* status, QWidget* parent)
    : MessageBar(context.theme, parent), status_(status) {
  setObjectName(QStringLiteral("check-notice"));
  status_->hide();
  hide();
  timer_.setInterval(250);
  connect(&timer_, &QTimer::timeout, this, &CheckNotice::look);
  connect(context.controller, &DocumentController::documentChanged, this, [this] {
    look();
    timer_.start();
  });
}

void CheckNotice::look() {
  const auto now = verificationStatus();
  status_->setVisible(!now.files.empty());
  if (!now.files.empty()) {
    const auto percent = now.bytes ? static_cast<int>(100 * now.checked / now.bytes) : 100;
    status_->setText(tr("Verifying weights: %1 %").arg(percent));
    status_->setToolTip(tr("Compares the checksums of the weights of %1 with their contents. A weight that a run needs "
                           "is verified first.")
                            .arg(toQt(now.files.front())));
  }
  if (const auto damage = now.damaged.empty() ? QString() : toQt(now.damaged.back());
      !damage.isEmpty() && damage != shown_) {
    shown_ = damage;
    MessageBar::show(Kind::error, tr("%1. A run that needs it stops with an error.").arg(damage));
  }
  if (now.files.empty()) timer_.stop();
}

}  // namespace retrograd::views

#include "check_notice.moc"
