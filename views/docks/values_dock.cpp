#include "views/docks/values_dock.h"

#include <QAction>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QSplitter>
#include <QTreeView>
#include <QVBoxLayout>

#include "core/debug/gradient_of.h"
#include "views/docks/dock_tree.h"
#include "views/models/format.h"
#include "views/models/own_names.h"

namespace retrograd::views {
ValuesDock::ValuesDock(ViewContext context, const QList<QAction*>& actions, QWidget* parent)
    : QWidget(parent), context_(context), model_(new ValuesModel(this)) {
  table_ = new QTreeView(this);
  table_->setObjectName(QStringLiteral("values"));
  table_->setModel(model_);
  model_->followNotes(context_.notes);
  prepareTree(*table_, tr("Values of the selected op"), true);
  table_->setRootIsDecorated(false);
  table_->header()->setStretchLastSection(false);
  table_->addActions(actions);
  table_->setContextMenuPolicy(Qt::ActionsContextMenu);
  auto* splitter = new QSplitter(Qt::Horizontal, this);
  splitter->addWidget(table_);
  splitter->addWidget(makeDetail());
  splitter->setStretchFactor(0, 3);
  splitter->setStretchFactor(1, 2);
  splitter->setChildrenCollapsible(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(splitter);
  soon_.setSingleShot(true);
  soon_.setInterval(30);
  connect(&soon_, &QTimer::timeout, this, &ValuesDock::request);
  connect(context_.selection, &Selection::changed, this, &ValuesDock::selectionChanged);
  connect(context_.execution, &ExecutionState::changed, this, &ValuesDock::ask);
  connect(context_.notes, &NoteBook::changed, this, &ValuesDock::ask);
  connect(context_.controller, &DocumentController::valuesReady, this, &ValuesDock::show);
  connect(context_.controller, &DocumentController::valuesFailed, this, &ValuesDock::clearDetail);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) { choose(now.row()); });
  connect(table_, &QTreeView::activated, this, [this](const QModelIndex& index) {
    const auto op = opOf(index);
    if (op && op != op_) Q_EMIT jumpRequested(op);
  });
  clearDetail(tr("Select an op to see its values"));
}

QWidget* ValuesDock::makeDetail() {
  auto* detail = new QWidget(this);
  panel_ = new ValuePanel(context_.theme, QStringLiteral("value"), detail);
  beside_ = new ValuePanel(context_.theme, QStringLiteral("beside"), detail);
  beside_->hide();
  picture_ = new QCheckBox(tr("Pict&ure"), detail);
  picture_->setObjectName(QStringLiteral("value-picture"));
  picture_->setToolTip(tr("Shows the slice as a picture with a colour scale, in place of a table"));
  withGradient_ = new QCheckBox(tr("Gradient &beside"), detail);
  withGradient_->setObjectName(QStringLiteral("value-gradient"));
  withGradient_->setToolTip(tr("Shows the gradient of the chosen value beside it, or what a chosen gradient is the gradient of"));
  auto* panels = new QHBoxLayout;
  panels->setSpacing(0);
  panels->addWidget(panel_, 1);
  panels->addWidget(beside_, 1);
  auto* switches = new QHBoxLayout;
  switches->setContentsMargins(8, 2, 4, 2);
  switches->addWidget(picture_);
  switches->addWidget(withGradient_);
  switches->addStretch(1);
  auto* layout = new QVBoxLayout(detail);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addLayout(panels, 1);
  layout->addLayout(switches);
  connect(picture_, &QCheckBox::toggled, panel_, &ValuePanel::setPicture);
  connect(picture_, &QCheckBox::toggled, beside_, &ValuePanel::setPicture);
  connect(withGradient_, &QCheckBox::toggled, this, [this](bool on) {
    beside_->setVisible(on);
    ask();
  });
  connect(panel_, &ValuePanel::leadingChanged, beside_, &ValuePanel::setLeading);
  connect(beside_, &ValuePanel::leadingChanged, panel_, &ValuePanel::setLeading);
  return detail;
}

ValueId ValuesDock::chosen() const { return model_->valueAt(table_->currentIndex().row()); }

void ValuesDock::selectionChanged() {
  const auto& selection = *context_.selection;
  const auto& document = context_.controller->document();
  const bool live = document && selection.analysis() == document->analysis;
  if (selection.op() != op_ || !live || model_->rowCount() == 0) {
    op_ = live ? selection.op() : BoundSymbolId();
    model_->expect(live ? document : nullptr, op_);
    clearDetail(op_ ? QString() : tr("Select an op to see its values"));
  }
  // The value that was clicked, else the first output, which the op is there for.
  int row = selection.value() ? model_->rowOf(selection.value()) : -1;
  if (row < 0)
    for (int i = model_->rowCount() - 1; i >= 0 && model_->data(model_->index(i, 0), Qt::DisplayRole).toString().startsWith(tr("out  "));
         --i)
      row = i;
  if (row < 0 && model_->rowCount() > 0) row = 0;
  if (row >= 0) table_->setCurrentIndex(model_->index(row, 0));
  for (int column = 0; column < ValuesModel::columns; ++column) table_->resizeColumnToContents(column);
  ask();
}

void ValuesDock::ask() {
  if (isVisible()) soon_.start();
}

void ValuesDock::request() {
  if (!isVisible() || !op_ || context_.execution->now().running) return;
  context_.controller->requestValues(op_, chosen(), withGradient_->isChecked());
}

void ValuesDock::choose(int row) {
  if (row < 0) return;
  context_.selection->selectValue(model_->valueAt(row));
  ask();
}

void ValuesDock::show(const std::shared_ptr<const ValueReport>& report) {
  if (report->op != op_) return;
  model_->setReport(report);
  for (int column = 0; column < ValuesModel::columns; ++column) table_->resizeColumnToContents(column);
  showDetail(*report);
}

void ValuesDock::showDetail(const ValueReport& report) {
  if (!report.detail) return clearDetail({});
  showPanel(*panel_, {}, *report.detail);
  if (!withGradient_->isChecked()) return;
  const auto& analysis = *context_.controller->document()->analysis;
  if (!report.beside) return beside_->clear(tr("It has no gradient, and is none"));
  const bool isGradient = valueOfGradient(analysis, report.detail->value).valid();
  showPanel(*beside_, isGradient ? tr("its value: ") : tr("its gradient: "), *report.beside);
}

void ValuesDock::showPanel(ValuePanel& panel, const QString& label, const ValueDetail& detail) {
  const auto& document = *context_.controller->document()->analysis->document;
  const auto name = label + fullNameOf(document, detail.value, context_.notes);
  if (!detail.contents.data) return panel.clear(detail.reason.empty() ? tr("%1 is a number").arg(name) : QStringLiteral("%1: %2").arg(name, QString::fromStdString(detail.reason)));
  const auto& meta = detail.contents.meta;
  panel.show(QStringLiteral("%1  %2  %3").arg(name, typeText(meta), bytesText(meta.bytes())), detail);
}

void ValuesDock::clearDetail(const QString& reason) {
  panel_->clear(reason);
  beside_->clear({});
}

void ValuesDock::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  ask();
}

void ValuesDock::hideEvent(QHideEvent* event) {
  context_.controller->cancelValues();
  QWidget::hideEvent(event);
}

}  // namespace retrograd::views
