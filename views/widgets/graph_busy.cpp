#include "views/widgets/graph_busy.h"

#include <QEvent>
#include <QGridLayout>

#include "views/widgets/controls.h"

namespace retrograd::views {
namespace {

constexpr int delay = 100;      // ms
constexpr int fromCorner = 12;  // pixels

}  // namespace

GraphBusy::GraphBusy(QWidget* graph)
    : QFrame(graph), text_(new QLabel(this)), bar_(new QProgressBar(this)), cancel_(new QToolButton(this)) {
  setObjectName(QStringLiteral("graph-busy"));
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  setCursor(Qt::ArrowCursor);
  text_->setTextFormat(Qt::PlainText);  // names of a file must not be read as markup
  text_->setFixedWidth(text_->fontMetrics().averageCharWidth() * 40);
  bar_->setMaximumHeight(14);
  bar_->setTextVisible(false);
  bar_->setAccessibleName(tr("Progress of the layout"));
  cancel_->setText(tr("Cancel"));
  named(cancel_, "graph-busy-cancel", tr("Cancel the layout of the graph"));
  cancel_->setToolTip(
      tr("Stops the layout (Esc in the graph); what dot has not finished is laid out in a simpler way"));
  auto* grid = withMargins(new QGridLayout(this), {10, 6, 10, 8});
  grid->setVerticalSpacing(4);
  grid->addWidget(text_, 0, 0, 1, 2);
  grid->addWidget(bar_, 1, 0);
  grid->addWidget(cancel_, 1, 1);
  delay_.setSingleShot(true);
  delay_.setInterval(delay);
  connect(&delay_, &QTimer::timeout, this, [this] {
    place();
    show();
    raise();
  });
  connect(cancel_, &QToolButton::clicked, this, &GraphBusy::cancelled);
  graph->installEventFilter(this);
  hide();
}

void GraphBusy::begin() {
  if (!isHidden() || delay_.isActive()) return;
  tell({}, 0);
  bar_->setRange(0, 0);  // until it is known how far it is
  delay_.start();
}

void GraphBusy::tell(const QString& stage, double fraction) {
  const auto words = stage.isEmpty() ? tr("Laying out") : tr("Laying out: %1").arg(stage);
  text_->setText(text_->fontMetrics().elidedText(words, Qt::ElideMiddle, text_->width()));
  bar_->setRange(0, 1000);
  bar_->setValue(static_cast<int>(fraction * 1000));
}

void GraphBusy::end() {
  delay_.stop();
  // The keyboard does not stay on a button that is gone.
  if (cancel_->hasFocus()) parentWidget()->setFocus();
  hide();
}

bool GraphBusy::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize) place();
  return QFrame::eventFilter(watched, event);
}

void GraphBusy::place() {
  const auto wanted = sizeHint();
  const int width = std::min(wanted.width(), parentWidget()->width() - 2 * fromCorner);
  setGeometry(fromCorner, parentWidget()->height() - wanted.height() - fromCorner, width, wanted.height());
}

}  // namespace retrograd::views
