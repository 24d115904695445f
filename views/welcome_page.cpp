#include "views/welcome_page.h"

#include <QAction>
#include <QDir>
#include <QFileInfo>

namespace retrograd::views {

WelcomePage::WelcomePage(RecentFiles* recent, QAction* open, QWidget* parent) : QWidget(parent), recent_(recent) {
  auto* title = new QLabel(tr("Open a saved model trace"), this);
  auto font = title->font();
  font.setPointSizeF(font.pointSizeF() * 1.7);
  title->setFont(font);
  auto* text = new QLabel(
      tr("Retrograd reads archives of torch.export (.pt2) and TorchScript files (.pt), derives the backward, links each backward op to "
         "the forward op it comes from, and runs both op by op. Drop a file here, or press Ctrl+O."),
      this);
  text->setWordWrap(true);
  auto* button = new QPushButton(tr("Open a File..."), this);
  connect(button, &QPushButton::clicked, open, &QAction::trigger);
  auto* column = new QVBoxLayout;
  column->setSpacing(14);
  column->addStretch(2);
  column->addWidget(title);
  column->addWidget(text);
  column->addWidget(button, 0, Qt::AlignLeft);
  list_ = new QVBoxLayout;
  list_->setSpacing(2);
  column->addLayout(list_);
  column->addStretch(3);
  auto* layout = new QHBoxLayout(this);
  layout->addStretch(1);
  layout->addLayout(column, 4);
  layout->addStretch(1);
}

void WelcomePage::showEvent(QShowEvent* event) {
  fill();
  QWidget::showEvent(event);
}

void WelcomePage::fill() {
  while (auto* item = list_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  if (recent_->paths().isEmpty()) return;
  list_->addWidget(new QLabel(tr("Opened lately"), this));
  for (const auto& path : recent_->paths().mid(0, 6)) {
    const QFileInfo info(path);
    auto* button = new QPushButton(
        QStringLiteral("%1/%2").arg(info.dir().dirName(), info.fileName()).replace(QLatin1Char('&'), QStringLiteral("&&")), this);
    button->setFlat(true);
    button->setToolTip(path);
    button->setAccessibleName(tr("Open %1").arg(path));
    connect(button, &QPushButton::clicked, this, [this, path] { Q_EMIT chosen(path); });
    list_->addWidget(button, 0, Qt::AlignLeft);
  }
}

}  // namespace retrograd::views
