#include "views/widgets/busy_panel.h"

#include <QHBoxLayout>

#include "views/widgets/controls.h"

namespace retrograd::views {

BusyPanel::BusyPanel(DocumentController* controller, QWidget* parent) : QWidget(parent), controller_(controller) {
  text_ = named(new QLabel(this), "busy-text");
  text_->setTextFormat(Qt::PlainText);
  bar_ = new QProgressBar(this);
  bar_->setFixedWidth(180);
  bar_->setMaximumHeight(14);
  bar_->setTextVisible(false);
  bar_->setAccessibleName(tr("Progress"));
  cancel_ = named(new QToolButton(this), "busy-cancel", tr("Cancel what is running"));
  cancel_->setText(tr("Cancel"));
  cancel_->setToolTip(tr("Stops between two ops"));
  auto* layout = withMargins(new QHBoxLayout(this), {});
  layout->addWidget(text_);
  layout->addWidget(bar_);
  layout->addWidget(cancel_);
  delay_.setSingleShot(true);
  delay_.setInterval(100);
  connect(&delay_, &QTimer::timeout, this, [this] { setVisible(true); });
  connect(cancel_, &QToolButton::clicked, this, [this] {
    controller_->cancelOpen();
    controller_->stop();
  });
  auto& worker = controller_->worker();
  connect(&worker, &Worker::started, this, [this](QObject* owner, const QString& tag, const QString& title) {
    if (owner != controller_ || title.isEmpty()) return;
    tag_ = tag;
    begin(title);
  });
  connect(&worker, &Worker::progressed, this,
          [this](QObject* owner, const QString& tag, const QString& stage, double fraction) {
            if (owner != controller_ || tag != tag_) return;
            text_->setText(stage.isEmpty() ? title_ : title_ + QStringLiteral(": ") + stage);
            bar_->setRange(0, 1000);
            bar_->setValue(static_cast<int>(fraction * 1000));
          });
  connect(&worker, &Worker::finished, this, [this](QObject* owner, const QString& tag) {
    if (owner == controller_ && tag == tag_) end();
  });
  connect(controller_, &DocumentController::openingChanged, this, [this] {
    if (!controller_->opening()) return end();
    // Another window may keep the worker busy: the wait shows too, and can be cancelled.
    tag_.clear();
    begin(tr("Waiting for the worker"));
  });
  setVisible(false);
}

void BusyPanel::begin(const QString& title) {
  title_ = title;
  text_->setText(title);
  bar_->setRange(0, 0);  // until the job says how far it is
  if (!isVisible()) delay_.start();
}

void BusyPanel::end() {
  tag_.clear();
  delay_.stop();
  setVisible(false);
}

}  // namespace retrograd::views
