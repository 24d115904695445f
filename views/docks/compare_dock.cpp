#include "views/docks/compare_dock.h"

#include <QAction>
#include <QFileInfo>
#include <QLocale>
#include <QStandardItemModel>
#include <QStyleOption>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "core/derivation/precision.h"
#include "views/findings/finding_sources.h"
#include "views/session/own_names.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/elided_label.h"
#include "views/widgets/flow_layout.h"
#include "views/widgets/item_view.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {
namespace {

/// Values that are not finite in either run: where they agree, they do so in that too.
std::ptrdiff_t badInBoth(const RunComparison& comparison) {
  return std::ranges::count_if(
      comparison.rows, [](const RunDifference& row) { return !std::isfinite(row.normA) && !std::isfinite(row.normB); });
}

}  // namespace

CompareDock::CompareDock(ViewContext context, QAction* compare, QWidget* parent)
    : Panel(context, "compare", parent), model_(new CompareModel(this)), table_(new QTreeView(this)) {
  model_->followNotes(context_.notes);
  prepareTree(*table_, model_, "compare", tr("Two runs op by op"), {.isFlat = true, .isSorted = true});
  setWidths(*table_, {{CompareModel::value, 120},
                      {CompareModel::relative, 90},
                      {CompareModel::largest, 90},
                      {CompareModel::normA, 90},
                      {CompareModel::normB, 90}});
  summary_ = named(new WrappedLabel(this), "compare-summary");
  first_ = new QToolButton(this);
  first_->setText(tr("First"));
  first_->setToolTip(tr("Jumps to the first op where the runs diverge"));
  first_->setAccessibleName(tr("To the first difference"));
  auto* line = withMargins(new QHBoxLayout, {8, 0, 8, 4});
  line->addWidget(commandButton(compare, this));
  line->addSpacing(6);
  line->addWidget(summary_, 1);
  line->addWidget(first_);
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addWidget(makeFields(compare));
  layout->addLayout(line);
  layout->addWidget(table_, 1);
  setList(table_);
  connect(first_, &QToolButton::clicked, this, [this] {
    const auto index = model_->index(model_->firstDivergence(), 0);
    table_->setCurrentIndex(shownIn(*table_, index));
    if (const auto op = opOf(index)) Q_EMIT jumpRequested(op);
  });
  selectByClick(table_);
  forget();
  refresh();
}

QWidget* CompareDock::makeFields(QAction* compare) {
  auto* fields = new QWidget(this);
  const auto makeCombo = [fields](const char* name, const QString& title, const QString& first) {
    auto* combo = makeBox(fields, name, title);
    combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    combo->setMinimumContentsLength(7);
    combo->addItem(first);
    return combo;
  };
  precision_ = makeCombo("compare-precision", tr("Precision of the other run"), tr("As here"));
  precision_->setToolTip(tr("Floating parameters, buffers, inputs and dtype literals of the other run"));
  for (auto dtype : precisions()) precision_->addItem(toQt(torchName(dtype)), static_cast<int>(dtype));
  precision_->setCurrentIndex(1);
  device_ = makeCombo("compare-device", tr("Device of the other run"), tr("As here"));
  seed_ = makeField(fields, "compare-seed", tr("Seed of the other run"), tr("As here"), compare);
  tolerance_ = makeField(fields, "compare-tolerance", tr("Tolerance"), {}, compare);
  tolerance_->setToolTip(tr("Relative difference at which two values part; empty: what is usual for the precision"));
  weights_ = makeField(fields, "compare-weights", tr("Safetensors file with weights of the other run"), tr("Its own"),
                       compare);
  file_ = makeField(fields, "compare-file", tr("Model or session of the other run"), tr("This one"), compare);
  for (auto* edit : {seed_, tolerance_})
    edit->setFixedWidth(fontMetrics().horizontalAdvance(QStringLiteral("0000000000")));
  auto* rows = withMargins(new FlowLayout(fields), {8, 4, 6, 4});  // a narrow panel takes more rows
  const auto place = [&](const QString& title, QWidget* field, QToolButton* browser = nullptr) {
    auto* pair = new QWidget(fields);
    auto* label = new QLabel(title, pair);
    label->setBuddy(field);
    auto* line = withMargins(new QHBoxLayout(pair), {}, 4);
    line->addWidget(label);
    line->addWidget(field, browser != nullptr ? 1 : 0);  // a path takes what is left of its row
    if (browser != nullptr) line->addWidget(browser);
    if (browser != nullptr) pair->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    rows->addWidget(pair);
  };
  place(tr("Precisio&n"), precision_);
  place(tr("&Device"), device_);
  place(tr("&Seed"), seed_);
  place(tr("&Tolerance"), tolerance_);
  place(tr("We&ights"), weights_,
        makeBrowser(fields, weights_, tr("Weights of the Other Run"), tr("Weights (*.safetensors)")));
  place(tr("Fi&le"), file_,
        makeBrowser(fields, file_, tr("Compare With"),
                    tr("Models and sessions (*.pt2 *.pt *.retrograd);;All files (*)")));
  connect(precision_, &QComboBox::currentIndexChanged, this, &CompareDock::precisionChanged);
  precisionChanged();
  return fields;
}

QLineEdit* CompareDock::makeField(QWidget* parent, const char* name, const QString& title, const QString& empty,
                                  QAction* compare) {
  auto* field = named(new QLineEdit(parent), name, title);
  field->setToolTip(title);
  field->setPlaceholderText(empty);
  connect(field, &QLineEdit::returnPressed, compare, &QAction::trigger);
  return field;
}

QToolButton* CompareDock::makeBrowser(QWidget* parent, QLineEdit* field, const QString& title, const QString& filter) {
  auto* button = new QToolButton(parent);
  button->setText(QStringLiteral("..."));
  button->setAccessibleName(tr("Choose a file"));
  button->setToolTip(tr("Choose a file"));
  connect(button, &QToolButton::clicked, this,
          [this, field, title, filter] { chooseFile(this, title, {}, filter, field, &QLineEdit::setText); });
  return button;
}

void CompareDock::refresh() {
  const auto& document = context_.controller->document();
  precision_->setItemText(
      0, document ? tr("As here (%1)").arg(toQt(torchName(ownPrecision(document->analysis->file)))) : tr("As here"));
  device_->setItemText(0,
                       document ? tr("As here (%1)").arg(toQt(toString(document->analysis->device))) : tr("As here"));
  for (auto* combo : {precision_, device_}) {
    QStyleOptionComboBox option;
    option.initFrom(combo);
    const QSize text(fontMetrics().horizontalAdvance(combo->itemText(0)) + 8, fontMetrics().height());
    combo->setMinimumWidth(style()->sizeFromContents(QStyle::CT_ComboBox, &option, text, combo).width());
  }
  askForDevices();
}

void CompareDock::askForDevices() {
  if (devicesFilled_ || !context_.controller->document()) return;
  // Once more for each document until it is answered: of a document that goes, no answer comes.
  ask(Asked::inSight, QStringLiteral("devices"), {},
      [this](const QuestionContext& context, const Progress&) -> Worker::Deliver {
        return [this, devices = context.engine.devices()] { fillDevices(devices); };
      });
}

/// One that cannot be used is there too and says why.
void CompareDock::fillDevices(const std::vector<DeviceStatus>& devices) {
  devicesFilled_ = true;
  auto* items = qobject_cast<QStandardItemModel*>(device_->model());
  for (const auto& status : devices) {
    const auto device = toQt(toString(status.device));
    device_->addItem(status.name.empty() ? device.toUpper() : tr("%1 (%2)").arg(toQt(status.name), device), device);
    auto* item = items->item(device_->count() - 1);
    item->setEnabled(status.available);
    item->setToolTip(status.available ? tr("Runs the other on %1").arg(device) : toQt(status.reason));
  }
}

std::optional<DType> CompareDock::precision() const {
  const auto dtype = precision_->currentData();
  return dtype.isValid() ? std::optional(static_cast<DType>(dtype.toInt())) : std::nullopt;
}

void CompareDock::precisionChanged() {
  tolerance_->setPlaceholderText(QString::number(usualTolerance(precision()), 'g'));
}

CompareDock::Fields CompareDock::fields() const {
  Fields fields;
  QStringList words;
  fields.other.precision = precision();
  if (fields.other.precision) words << precision_->currentText();
  if (const auto device = device_->currentData().toString(); !device.isEmpty()) {
    fields.other.device = deviceFromString(device.toStdString());
    words << device;
  }
  if (const auto text = seed_->text().trimmed(); !text.isEmpty()) {
    fields.other.seed = seedFromText(text);
    if (!fields.other.seed) fields.problem = noSeedText(text);
    words << tr("seed %1").arg(text);
  }
  if (const auto path = weights_->text().trimmed(); !path.isEmpty()) {
    fields.other.weights = path.toStdString();
    words << QFileInfo(path).fileName();
  }
  if (const auto path = file_->text().trimmed(); !path.isEmpty()) {
    fields.other.path = path.toStdString();
    words << QFileInfo(path).fileName();
  }
  fields.words = words.isEmpty() ? tr("a second run of the same") : words.join(QStringLiteral(", "));
  fields.tolerance = usualTolerance(fields.other.precision);
  if (const auto text = tolerance_->text().trimmed(); !text.isEmpty()) {
    bool isNumber = false;
    fields.tolerance = QLocale::c().toDouble(text, &isNumber);
    if (!isNumber || !(fields.tolerance >= 0)) fields.problem = tr("'%1' is not a tolerance").arg(text);
  }
  return fields;
}

void CompareDock::compare() {
  const auto fields = this->fields();
  if (!fields.problem.isEmpty()) return summary_->setText(QStringLiteral("! ") + fields.problem);
  const auto work = [this, fields](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    auto comparison = std::make_shared<const RunComparison>(
        context.engine.compare(*context.document.analysis, fields.other, fields.tolerance, progress));
    return [this, comparison, fields] { show(comparison, fields); };
  };
  askAloud(summary_, QStringLiteral("compare"), tr("Comparing"), tr("Running both..."), work);
}

void CompareDock::show(const std::shared_ptr<const RunComparison>& comparison, const Fields& asked) {
  const auto& words = asked.words;
  const auto& document = context_.controller->document();
  model_->show(document, comparison);
  FindingBoard::of(*context_.controller)
      .set(QStringLiteral("compare ") + words,
           findingsOf(*document->analysis->document, *comparison, words.toStdString()));
  const int first = model_->firstDivergence();
  first_->setEnabled(first >= 0);
  auto text =
      first < 0 ? tr("\u2713 Against %1: the runs agree in %2 values within a tolerance of %3; the largest relative "
                     "difference is %4")
                      .arg(words)
                      .arg(comparison->rows.size())
                      .arg(asked.tolerance)
                      .arg(numberText(comparison->largest))
                : tr("\u25c6 Against %1: the runs diverge at %2, value %3 of %4, by more than %5")
                      .arg(words, nameOf(*document->analysis->document, comparison->rows[first].valueA, context_.notes))
                      .arg(first + 1)
                      .arg(comparison->rows.size())
                      .arg(asked.tolerance);
  if (const auto bad = badInBoth(*comparison); bad > 0)
    text += tr("; %1 of them have NaN or Inf on both sides").arg(bad);
  if (!comparison->onlyInA.empty() || !comparison->onlyInB.empty())
    text += tr("; ops only here: %1, only there: %2").arg(comparison->onlyInA.size()).arg(comparison->onlyInB.size());
  summary_->setText(text);
  if (first >= 0) {
    const auto row = shownIn(*table_, model_->index(first, 0));
    table_->setCurrentIndex(row);
    table_->scrollTo(row, QAbstractItemView::PositionAtCenter);
  }
}

void CompareDock::forget() {
  model_->clear();
  first_->setEnabled(false);
  summary_->setText(tr("No runs were compared yet"));
}

}  // namespace retrograd::views
