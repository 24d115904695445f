#include "views/docks/references_dock.h"

#include <QHeaderView>

#include "views/docks/dock_tree.h"

namespace retrograd::views {
namespace {

/// The selected value alone; else what the op makes, then what it reads. Parameters and inputs are listed too: who else uses them?
std::vector<ValueId> asked(const Document& document, BoundSymbolId op, ValueId value) {
  if (value) return {value};
  std::vector<ValueId> values;
  const auto add = [&](std::span<const ValueId> more) {
    for (auto one : more)
      if (one && std::find(values.begin(), values.end(), one) == values.end()) values.push_back(one);
  };
  if (op) {
    add(document.outputs(op));
    add(document.operands(op));
  }
  return values;
}

}  // namespace

ReferencesDock::ReferencesDock(ViewContext context, QWidget* parent) : QTreeView(parent), context_(context), model_(new ReferencesModel(this)) {
  setObjectName(QStringLiteral("references"));
  setModel(model_);
  prepareTree(*this, tr("References of the selected value or op"), true);
  setIndentation(14);
  header()->setStretchLastSection(true);
  header()->resizeSection(0, 190);
  connect(context_.selection, &Selection::changed, this, &ReferencesDock::refresh);
  connect(context_.controller, &DocumentController::documentChanged, this, &ReferencesDock::refresh);
  connect(context_.notes, &NoteBook::changed, this, &ReferencesDock::refresh);
  connect(this, &QTreeView::activated, this, [this](const QModelIndex& index) {
    if (const auto op = opOf(index)) Q_EMIT jumpRequested(op);
  });
}

void ReferencesDock::refresh() {
  if (!isVisible()) return;
  const auto document = context_.controller->document();
  if (!document || context_.selection->analysis() != document->analysis) {
    job_.cancel();
    return model_->show(nullptr, {});
  }
  const auto values = asked(*document->analysis->document, context_.selection->op(), context_.selection->value());
  job_.start([this, document, values](const Progress& progress) -> PoolJob::Deliver {
    std::vector<ValueReferences> found;
    for (auto value : values) {
      progress.check();
      found.push_back({value, referencesOf(*document->analysis, value)});
    }
    return [this, document, found = std::move(found)] {
      model_->show(document, found, context_.notes);
      expandToDepth(0);
      markSelected();
    };
  });
}

/// The row of the selected op, so that one sees where among the uses one stands.
void ReferencesDock::markSelected() {
  const auto section = model_->index(0, 0);
  for (int row = 0; row < model_->rowCount(section); ++row)
    if (const auto index = model_->index(row, 0, section); opOf(index) == context_.selection->op()) return setCurrentIndex(index);
}

void ReferencesDock::step(bool forward) {
  const auto section = model_->index(0, 0);
  const int count = model_->rowCount(section);
  // Where the dock is pinned, the op that it is about stays, and the row that one went to last says where one stands.
  const auto current = currentIndex();
  int at = current.isValid() && current.parent() == section ? current.row() : -1;
  for (int row = 0; row < count && at < 0; ++row)
    if (const auto op = opOf(model_->index(row, 0, section)); op && op == context_.selection->op()) at = row;
  const auto here = at < 0 ? context_.selection->op() : opOf(model_->index(at, 0, section));
  for (int tried = 0; tried < count; ++tried) {
    at = at < 0 ? (forward ? 0 : count - 1) : (at + (forward ? 1 : count - 1)) % count;
    const auto index = model_->index(at, 0, section);
    const auto op = opOf(index);
    if (!op || op == here || !isStep_(op)) continue;
    const auto value = ValueId(section.data(valueRole).toInt());
    setCurrentIndex(index);
    Q_EMIT jumpRequested(op);
    context_.selection->select(op, value);  // stays with the value, so that the next step goes on along its uses
    return;
  }
}

void ReferencesDock::showEvent(QShowEvent* event) {
  QTreeView::showEvent(event);
  refresh();
}

}  // namespace retrograd::views
