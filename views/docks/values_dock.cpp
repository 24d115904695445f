#include "views/docks/values_dock.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QSplitter>
#include <QVBoxLayout>
#include <limits>

#include "views/docks/dock_tree.h"
#include "views/models/format.h"

namespace retrograd::views {
namespace {

/// The selected cells as tab-separated lines.
void copyCells(const QTableView& table) {
  QMap<int, QMap<int, QString>> cells;
  for (const auto& index : table.selectionModel()->selectedIndexes()) cells[index.row()][index.column()] = index.data().toString();
  QStringList lines;
  for (const auto& row : cells) lines << QStringList(row.values()).join(QLatin1Char('\t'));
  QApplication::clipboard()->setText(lines.join(QLatin1Char('\n')));
}

}  // namespace

ValuesDock::ValuesDock(ViewContext context, const QList<QAction*>& actions, QWidget* parent)
    : QWidget(parent), context_(context), model_(new ValuesModel(this)), slice_(new SliceModel(this)) {
  table_ = new QTreeView(this);
  table_->setObjectName(QStringLiteral("values"));
  table_->setModel(model_);
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
  title_ = new QLabel(detail);
  title_->setTextFormat(Qt::PlainText);
  title_->setMinimumWidth(1);
  histogram_ = new HistogramView(context_.theme, detail);
  histogram_->setFixedHeight(74);
  leading_ = new QWidget(detail);
  auto* leadingLayout = new QHBoxLayout(leading_);
  leadingLayout->setContentsMargins(0, 0, 0, 0);
  leadingLabel_ = new QLabel(tr("Slice"), leading_);
  contents_ = new QTableView(detail);
  contents_->setObjectName(QStringLiteral("contents"));
  contents_->setAccessibleName(tr("Contents of the chosen value"));
  contents_->setModel(slice_);
  contents_->setFrameShape(QFrame::NoFrame);
  contents_->setShowGrid(false);
  contents_->setFont(Theme::codeFont());
  const QFontMetrics metrics(contents_->font());
  for (auto* header : {contents_->horizontalHeader(), contents_->verticalHeader()}) header->setSectionResizeMode(QHeaderView::Fixed);
  contents_->horizontalHeader()->setDefaultSectionSize(metrics.horizontalAdvance(QStringLiteral("-1.23456e-10")) + 10);
  contents_->verticalHeader()->setDefaultSectionSize(metrics.height() + 4);
  auto* copyAction = new QAction(tr("Copy"), contents_);
  copyAction->setShortcut(QKeySequence::Copy);
  copyAction->setShortcutContext(Qt::WidgetShortcut);
  contents_->addAction(copyAction);
  contents_->setContextMenuPolicy(Qt::ActionsContextMenu);
  connect(copyAction, &QAction::triggered, this, [this] { copyCells(*contents_); });
  auto* layout = new QVBoxLayout(detail);
  layout->setContentsMargins(8, 4, 4, 0);
  layout->setSpacing(4);
  layout->addWidget(title_);
  layout->addWidget(histogram_);
  layout->addWidget(leading_);
  layout->addWidget(contents_, 1);
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
  context_.controller->requestValues(op_, chosen());
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
  const auto& detail = *report.detail;
  const auto& document = *context_.controller->document()->analysis->document;
  const auto name = QString::fromStdString(document.displayName(detail.value));
  if (!detail.contents.data) {
    for (const auto& row : report.rows)
      if (row.value == detail.value && !row.state.present)
        return clearDetail(QStringLiteral("%1: %2").arg(name, QString::fromStdString(row.state.reason)));
    return clearDetail(QStringLiteral("%1 is a number").arg(name));
  }
  const auto& meta = detail.contents.meta;
  title_->setText(QStringLiteral("%1  %2  %3").arg(name, typeText(meta), bytesText(meta.bytes())));
  histogram_->set(detail.histogram, detail.statistics);
  slice_->setData(detail.contents);
  makeSpinBoxes();
}

void ValuesDock::clearDetail(const QString& reason) {
  title_->setText(reason);
  histogram_->set({}, {});
  slice_->setData({});
  makeSpinBoxes();
}

void ValuesDock::makeSpinBoxes() {
  for (auto* old : leading_->findChildren<QSpinBox*>()) delete old;
  delete leading_->layout();
  auto* layout = new QHBoxLayout(leading_);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(leadingLabel_);
  const auto sizes = slice_->leadingSizes();
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    auto* box = new QSpinBox(leading_);
    box->setRange(0, static_cast<int>(std::clamp<std::int64_t>(sizes[dim] - 1, 0, std::numeric_limits<int>::max())));
    box->setAccessibleName(tr("Index in dim %1").arg(dim));
    box->setToolTip(tr("Index in dim %1, of %2").arg(dim).arg(sizes[dim]));
    connect(box, &QSpinBox::valueChanged, slice_, [this, dim](int index) { slice_->setLeading(dim, index); });
    layout->addWidget(box);
  }
  layout->addStretch(1);
  leading_->setVisible(!sizes.empty());
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
