#include "views/docks/values_dock.h"

#include <QAction>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QScrollBar>
#include <QVBoxLayout>

#include "core/derivation/gradient_of.h"
#include "views/session/own_names.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/read_by_enter.h"
#include "views/widgets/shown_op.h"
#include "views/widgets/sorted_rows.h"
#include "views/widgets/state_delegate.h"

namespace retrograd::views {
namespace {

const QString pictureKey = QStringLiteral("picture");
const QString besideKey = QStringLiteral("beside");

constexpr int leastTable = 600;   // all but the last two columns
constexpr int leastDetail = 200;  // a histogram and two columns of elements

}  // namespace

ValuesDock::ValuesDock(ViewContext context, const QList<QAction*>& actions, QWidget* parent)
    : Panel(context, "values", parent), model_(new ValuesModel(this)) {
  table_ = new QTreeView(this);
  model_->followNotes(context_.notes);
  prepareTree(*table_, model_, "values", tr("Values of the selected op"), {.isFlat = true, .isSorted = true});
  table_->header()->setStretchLastSection(false);
  table_->setItemDelegateForColumn(ValuesModel::state, new StateDelegate(table_));
  table_->header()->moveSection(table_->header()->visualIndex(ValuesModel::state), ValuesModel::label);
  for (int column : {ValuesModel::inf, ValuesModel::nan})
    table_->header()->moveSection(table_->header()->visualIndex(column), ValuesModel::least);
  table_->header()->moveSection(table_->header()->visualIndex(ValuesModel::norm),
                                table_->header()->visualIndex(ValuesModel::deviation));
  columns_ = new ColumnFitter(table_);
  columns_->limit(ValuesModel::label, 8);  // words may be cut, that numbers show in half of a small window
  columns_->limit(ValuesModel::valueName, 11);
  columns_->limit(ValuesModel::type, 14);
  table_->addActions(actions);
  splitter_ = new QSplitter(Qt::Horizontal, this);
  splitter_->addWidget(table_);
  splitter_->addWidget(makeDetail());
  splitter_->setChildrenCollapsible(false);
  splitter_->installEventFilter(this);
  connect(splitter_, &QSplitter::splitterMoved, this, [this] { isShareChosen_ = true; });
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addWidget(new ShownOp(context_, this));
  layout->addWidget(splitter_, 1);
  setList(table_);
  new ReadByEnter(table_);
  setDelay(30);
  connect(context_.selection, &Selection::changed, this, [this] {
    if (inSight()) follow();
    invalidate();
  });
  connect(context_.execution, &ExecutionState::changed, this, &ValuesDock::invalidate);
  connect(context_.notes, &NoteBook::changed, this, &ValuesDock::invalidate);
  connect(&context_.controller->ahead().numbers(), &RunNumbers::changed, this, [this] {
    if (context_.execution->now().running) invalidate();
  });
  connect(&context_.controller->questions(), &Questions::valuesReady, this, &ValuesDock::show);
  connect(&context_.controller->questions(), &Questions::valuesFailed, this, [this](const QString& reason) {
    model_->setFailure(reason);
    clearDetail(reason);
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
    if (!following_) choose(ofModel(now).row());
  });
  clearDetail(noOpText());
}

QWidget* ValuesDock::makeDetail() {
  auto* detail = new QWidget(this);
  elements_ = new ElementsView(context_.theme, QStringLiteral("value"), detail);
  beside_ = new ElementsView(context_.theme, QStringLiteral("beside"), detail);
  beside_->hide();
  picture_ = named(new QCheckBox(tr("Pict&ure"), detail), "value-picture");
  picture_->setToolTip(tr("Shows the slice as a picture with a colour scale instead of a table"));
  withGradient_ = named(new QCheckBox(tr("With gra&dient"), detail), "value-gradient");
  withGradient_->setToolTip(tr("Shows the chosen value with its gradient, or a chosen gradient with its value"));
  auto* sideBySide = new QHBoxLayout;
  sideBySide->setSpacing(0);
  sideBySide->addWidget(elements_, 1);
  sideBySide->addWidget(beside_, 1);
  auto* switches = withMargins(new QHBoxLayout, {8, 2, 4, 2});
  switches->addWidget(picture_);
  switches->addWidget(withGradient_);
  switches->addStretch(1);
  auto* layout = withMargins(new QVBoxLayout(detail), {}, 0);
  layout->addLayout(sideBySide, 1);
  layout->addLayout(switches);
  connect(picture_, &QCheckBox::toggled, elements_, &ElementsView::setPicture);
  connect(picture_, &QCheckBox::toggled, beside_, &ElementsView::setPicture);
  connect(withGradient_, &QCheckBox::toggled, this, [this](bool on) {
    beside_->setVisible(on);
    invalidate();
  });
  connect(elements_, &ElementsView::leadingChanged, beside_, &ElementsView::setLeading);
  connect(beside_, &ElementsView::leadingChanged, elements_, &ElementsView::setLeading);
  return detail;
}

void ValuesDock::arrange() {
  const bool isBelow = splitter_->width() < leastTable + leastDetail;
  const auto orientation = isBelow ? Qt::Vertical : Qt::Horizontal;
  if (splitter_->orientation() != orientation) {
    splitter_->setOrientation(orientation);
    for (auto* elements : {elements_, beside_}) elements->setWide(isBelow);
    isShareChosen_ = false;
  }
  divideRoom();
}

void ValuesDock::divideRoom() {
  if (model_->rowCount() > 0) tableWidth_ = std::max(tableWidth_, table_->header()->length());
  if (isShareChosen_) return;
  if (splitter_->orientation() == Qt::Horizontal) {
    const int table = std::min(std::max(tableWidth_, leastTable) + table_->verticalScrollBar()->sizeHint().width(),
                               splitter_->width() - leastDetail);
    return splitter_->setSizes({table, splitter_->width() - table});
  }
  constexpr int fewest = 3, most = 4;  // of most ops: all
  const int rows = model_->rowCount() > 0 ? std::clamp(model_->rowCount(), fewest, most) : most;
  const bool scrolls = table_->header()->length() > splitter_->width();
  const int table = table_->header()->height() + rows * (table_->fontMetrics().height() + 4) +
                    (scrolls ? table_->horizontalScrollBar()->sizeHint().height() : 0);
  splitter_->setSizes({table, splitter_->height() - splitter_->handleWidth() - table});
}

bool ValuesDock::eventFilter(QObject* watched, QEvent* event) {
  if (watched == splitter_ && event->type() == QEvent::Resize) arrange();
  return Panel::eventFilter(watched, event);
}

ValueId ValuesDock::chosen() const { return model_->valueAt(ofModel(table_->currentIndex()).row()); }

void ValuesDock::follow() {
  following_ = true;
  const auto open = document();
  const auto op = open ? context_.selection->op() : BoundSymbolId();
  if (op != op_ || model_->rowCount() == 0) {
    op_ = op;
    model_->expect(open, op_);
    columns_->fit();
    divideRoom();
    clearDetail(op_ ? QString() : noOpText());
  }
  if (const int now = ofModel(table_->currentIndex()).row();
      now >= 0 && model_->valueAt(now) == context_.selection->value() && model_->isAfter(now)) {
    following_ = false;
    return;
  }
  int row = context_.selection->value() ? model_->rowOf(context_.selection->value()) : -1;
  for (int i = 0; row < 0 && i < model_->rowCount(); ++i)
    if (model_->isOutput(i)) row = i;
  if (row < 0 && model_->rowCount() > 0) row = 0;
  if (row >= 0) table_->setCurrentIndex(shownIn(*table_, model_->index(row, 0)));
  following_ = false;
}

void ValuesDock::refresh() {
  follow();
  if (!op_) return;
  if (context_.execution->now().running) return showWhatRan();
  const auto row = ofModel(table_->currentIndex()).row();
  context_.controller->questions().requestValues(
      {op_, chosen(), row >= 0 && model_->isAfter(row), withGradient_->isChecked()});
}

/// While a run goes on the worker answers nothing: what the run has seen of the op's values so far is here.
void ValuesDock::showWhatRan() {
  const auto& numbers = context_.controller->ahead().numbers();
  auto report = std::make_shared<ValueReport>();
  report->op = op_;
  report->rows = valueRows(*document()->analysis->document, op_, true);
  for (auto& row : report->rows) {
    row.state.reason = row.absentNow = "a run goes on";
    if (const auto* s = row.after ? nullptr : numbers.statistics(row.value)) row.statistics = *s;
  }
  model_->setReport(report);
  columns_->widen();
  divideRoom();
  clearDetail(tr("A run goes on: elements show when it stops"));
}

void ValuesDock::forget() {
  following_ = true;
  op_ = {};
  model_->expect(nullptr, {});
  tableWidth_ = 0;
  clearDetail({});
  following_ = false;
}

void ValuesDock::leave() {
  context_.controller->questions().cancelValues();
  invalidate();  // whether there was an answer or not, it may be of another position by then
  Q_EMIT elementsChanged();
}

void ValuesDock::activate(const QModelIndex& row) {
  if (opOf(row) != op_) Panel::activate(row);
}

void ValuesDock::choose(int row) {
  if (row < 0) return;
  context_.selection->selectValue(model_->valueAt(row));
  invalidate();
}

void ValuesDock::show(const std::shared_ptr<const ValueReport>& report) {
  if (!inSight() || report->op != op_) return;
  model_->setReport(report);
  columns_->widen();
  divideRoom();
  showDetail(*report);
}

void ValuesDock::showDetail(const ValueReport& report) {
  if (!report.detail) return clearDetail({});
  showElements(*elements_, {}, *report.detail);
  if (!withGradient_->isChecked()) return;
  const auto& analysis = *context_.controller->document()->analysis;
  if (!report.beside) return beside_->clear(tr("It has no gradient and is not a gradient"));
  const bool isGradient = valueOfGradient(analysis, report.detail->value).valid();
  showElements(*beside_, isGradient ? tr("its value: ") : tr("its gradient: "), *report.beside);
}

void ValuesDock::showElements(ElementsView& elements, const QString& label, const ValueDetail& detail) {
  const auto& document = *context_.controller->document()->analysis->document;
  const auto name = label + fullNameOf(document, detail.value, context_.notes);
  if (!detail.contents.data) {
    elements.clear(detail.reason.empty() ? tr("%1 is a number").arg(name)
                                         : QStringLiteral("%1: %2").arg(name, toQt(detail.reason)));
    return Q_EMIT elementsChanged();
  }
  const auto& meta = detail.contents.meta;
  elements.show(QStringLiteral("%1  %2  %3").arg(name, typeText(meta), bytesText(meta.bytes())), detail);
  Q_EMIT elementsChanged();
}

QString ValuesDock::whyNoElement(Element wanted) const {
  if (!inSight()) return tr("Values is not in sight");
  if (!elements_->contents().data || elements_->contents().meta.elements() == 0)
    return tr("Values shows no elements: select a value that is there");
  const auto& known = elements_->statistics();
  if (wanted == Element::firstNan && known.nan + known.inf == 0) return tr("All elements that Values shows are finite");
  return {};
}

void ValuesDock::goToElement(Element wanted) {
  const auto data = elements_->contents();  // shares the memory
  ask(Asked::inSight, QStringLiteral("element"), tr("Looking for the element"),
      [this, data, wanted](const QuestionContext&, const Progress& progress) -> Worker::Deliver {
        const auto index = findElement(data, wanted, progress);
        return [this, data, index] {
          if (!index || data.data != elements_->contents().data) return;
          std::int64_t element = 0;
          for (std::size_t dim = 0; dim < index->size(); ++dim)
            element = element * data.meta.sizes[dim] + (*index)[dim];
          const auto words = tr("%1 at %2").arg(elementText(data, element), toQt(indexText(*index)));
          Q_EMIT elementFound(elements_->goTo(*index) ? words : tr("%1, beyond what the table shows").arg(words));
        };
      });
}

void ValuesDock::clearDetail(const QString& reason) {
  elements_->clear(reason);
  beside_->clear({});
  Q_EMIT elementsChanged();
}

QVariantMap ValuesDock::saveState() const {
  auto state = Panel::saveState();
  state[pictureKey] = picture_->isChecked();
  state[besideKey] = withGradient_->isChecked();
  return state;
}

void ValuesDock::restoreState(const QVariantMap& state) {
  Panel::restoreState(state);
  picture_->setChecked(state.value(pictureKey).toBool());
  withGradient_->setChecked(state.value(besideKey).toBool());
}

}  // namespace retrograd::views
