#include "views/docks/compare_dock.h"

#include <QAction>
#include <QFileDialog>
#include <QHeaderView>
#include <QLocale>
#include <QVBoxLayout>

#include "views/docks/dock_tree.h"
#include "views/models/format.h"

namespace retrograd::views {
namespace {

const QString compareTag = QStringLiteral("compare");

}  // namespace

CompareDock::CompareDock(ViewContext context, QAction* compare, QWidget* parent)
    : QWidget(parent), context_(context), model_(new CompareModel(this)), table_(new QTreeView(this)) {
  table_->setObjectName(QStringLiteral("compare"));
  table_->setModel(model_);
  prepareTree(*table_, tr("Two runs op by op"), true);
  table_->setRootIsDecorated(false);
  table_->header()->setStretchLastSection(true);
  for (const auto& [column, width] : {std::pair(CompareModel::value, 120), {CompareModel::relative, 90}, {CompareModel::largest, 90}, {CompareModel::normA, 90}, {CompareModel::normB, 90}})
    table_->header()->resizeSection(column, width);
  summary_ = new QLabel(this);
  summary_->setObjectName(QStringLiteral("compare-summary"));
  summary_->setTextFormat(Qt::PlainText);
  summary_->setWordWrap(true);
  first_ = new QToolButton(this);
  first_->setText(tr("First"));
  first_->setToolTip(tr("Jumps to the op where the runs part first"));
  first_->setAccessibleName(tr("To the first difference"));
  auto* line = new QHBoxLayout;
  line->setContentsMargins(8, 0, 8, 4);
  line->addWidget(summary_, 1);
  line->addWidget(first_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(makeLine(compare));
  layout->addLayout(line);
  layout->addWidget(table_, 1);
  connect(context_.controller, &DocumentController::documentChanged, this, &CompareDock::clear);
  connect(first_, &QToolButton::clicked, this, [this] {
    const auto index = model_->index(model_->firstDivergence(), 0);
    table_->setCurrentIndex(index);
    if (const auto op = opOf(index)) Q_EMIT jumpRequested(op);
  });
  connect(table_, &QTreeView::activated, this, [this](const QModelIndex& index) {
    if (const auto op = opOf(index)) Q_EMIT jumpRequested(op);
  });
  connect(table_, &QTreeView::clicked, this, [this](const QModelIndex& index) {
    if (const auto op = opOf(index)) context_.selection->select(op, ValueId(index.data(valueRole).toInt()));
  });
  againstChanged();
  clear();
}

QWidget* CompareDock::makeLine(QAction* compare) {
  auto* line = new QWidget(this);
  against_ = new QComboBox(line);
  against_->setObjectName(QStringLiteral("compare-against"));
  against_->setAccessibleName(tr("What to compare with"));
  against_->addItem(tr("In double precision"), static_cast<int>(Against::doublePrecision));
  against_->addItem(tr("With another seed"), static_cast<int>(Against::seed));
  against_->addItem(tr("With other weights"), static_cast<int>(Against::weights));
  against_->addItem(tr("Another file"), static_cast<int>(Against::file));
  what_ = new QLineEdit(line);
  what_->setObjectName(QStringLiteral("compare-what"));
  browse_ = new QToolButton(line);
  browse_->setText(QStringLiteral("..."));
  browse_->setAccessibleName(tr("Choose a file"));
  tolerance_ = new QLineEdit(QStringLiteral("1e-4"), line);
  tolerance_->setObjectName(QStringLiteral("compare-tolerance"));
  tolerance_->setAccessibleName(tr("Tolerance"));
  tolerance_->setToolTip(tr("Relative difference at which two values part"));
  tolerance_->setMaximumWidth(80);
  auto* button = new QToolButton(line);
  button->setDefaultAction(compare);
  button->setToolButtonStyle(Qt::ToolButtonTextOnly);
  button->setFocusPolicy(Qt::StrongFocus);
  auto* tolerance = new QLabel(tr("&Tolerance"), line);
  tolerance->setBuddy(tolerance_);
  auto* row = new QHBoxLayout(line);
  row->setContentsMargins(6, 4, 6, 4);
  row->addWidget(against_);
  row->addWidget(what_, 1);
  row->addWidget(browse_);
  row->addStretch(0);
  row->addWidget(tolerance);
  row->addWidget(tolerance_);
  row->addWidget(button);
  connect(against_, &QComboBox::currentIndexChanged, this, &CompareDock::againstChanged);
  connect(browse_, &QToolButton::clicked, this, &CompareDock::browse);
  for (auto* edit : {what_, tolerance_}) connect(edit, &QLineEdit::returnPressed, compare, &QAction::trigger);
  return line;
}

CompareDock::Against CompareDock::against() const { return static_cast<Against>(against_->currentData().toInt()); }

void CompareDock::againstChanged() {
  const auto kind = against();
  const bool isFile = kind == Against::weights || kind == Against::file;
  what_->clear();
  what_->setVisible(isFile || kind == Against::seed);
  browse_->setVisible(isFile);
  const auto name = kind == Against::seed ? tr("Seed of the other run") : kind == Against::weights ? tr("Safetensors file with weights") : tr("Model or session");
  what_->setAccessibleName(name);
  what_->setPlaceholderText(name);
}

void CompareDock::browse() {
  const auto filter = against() == Against::weights ? tr("Weights (*.safetensors)") : tr("Models and sessions (*.pt2 *.pt *.retrograd);;All files (*)");
  auto* dialog = new QFileDialog(this, tr("Compare With"), {}, filter);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, what_, &QLineEdit::setText);
  dialog->open();
}

QString CompareDock::counterpart(Counterpart& other) const {
  const auto text = what_->text().trimmed();
  switch (against()) {
    case Against::doublePrecision:
      other.inDouble = true;
      return {};
    case Against::seed: {
      bool isNumber = false;
      other.seed = text.toULongLong(&isNumber);
      return isNumber ? QString() : tr("Give a seed: a number from 0 on");
    }
    case Against::weights:
      other.weights = text.toStdString();
      return text.isEmpty() ? tr("Choose a safetensors file with weights") : QString();
    case Against::file:
      other.path = text.toStdString();
      return text.isEmpty() ? tr("Choose a model or a session") : QString();
  }
  return {};
}

void CompareDock::compare() {
  Counterpart other;
  auto problem = counterpart(other);
  bool isNumber = false;
  const double tolerance = QLocale::c().toDouble(tolerance_->text().trimmed(), &isNumber);
  if (problem.isEmpty() && (!isNumber || !(tolerance >= 0))) problem = tr("'%1' is no tolerance").arg(tolerance_->text());
  if (!problem.isEmpty()) return summary_->setText(QStringLiteral("! ") + problem);
  summary_->setText(tr("Running both..."));
  const auto question = [this, other, tolerance](const Bench& bench, const Progress& progress) -> Worker::Deliver {
    auto comparison = std::make_shared<const RunComparison>(bench.engine.compare(*bench.document.analysis, other, tolerance, progress));
    return [this, comparison] { show(comparison); };
  };
  context_.controller->ask(this, compareTag, tr("Comparing"), question, [this](const QString& message) {
    summary_->setText(message.isEmpty() ? tr("Cancelled") : QStringLiteral("! ") + message);
  });
}

void CompareDock::show(const std::shared_ptr<const RunComparison>& comparison) {
  const auto& document = context_.controller->document();
  model_->show(document, comparison);
  const int first = model_->firstDivergence();
  first_->setEnabled(first >= 0);
  auto text = first < 0 ? tr("\u2713 The runs agree in %1 values; the largest relative difference is %2").arg(comparison->rows.size()).arg(numberText(comparison->largest))
                        : tr("\u25c6 The runs part at %1, value %2 of %3")
                              .arg(QString::fromStdString(document->analysis->document->displayName(comparison->rows[static_cast<std::size_t>(first)].valueA)))
                              .arg(first + 1)
                              .arg(comparison->rows.size());
  if (!comparison->onlyInA.empty() || !comparison->onlyInB.empty())
    text += tr("; %1 op(s) only here, %2 only there").arg(comparison->onlyInA.size()).arg(comparison->onlyInB.size());
  summary_->setText(text);
  if (first >= 0) {
    table_->setCurrentIndex(model_->index(first, 0));
    table_->scrollTo(model_->index(first, 0), QAbstractItemView::PositionAtCenter);
  }
}

void CompareDock::clear() {
  model_->clear();
  first_->setEnabled(false);
  summary_->setText(tr("No runs were compared yet"));
}

}  // namespace retrograd::views
