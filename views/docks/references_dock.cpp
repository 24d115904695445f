#include "views/docks/references_dock.h"

#include "views/widgets/dock_tree.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {
namespace {

/// The selected value alone; else what the op makes, then what it reads. Parameters and inputs are listed too: who else
/// uses them?
std::vector<ValueId> asked(const Document& document, BoundSymbolId op, ValueId value) {
  if (value) return {value};
  std::vector<ValueId> values;
  const auto add = [&](std::span<const ValueId> more) {
    for (auto one : more)
      if (one && std::ranges::find(values, one) == values.end()) values.push_back(one);
  };
  if (op) {
    add(document.outputs(op));
    add(document.operands(op));
  }
  return values;
}

}  // namespace

ReferencesDock::ReferencesDock(ViewContext context, QWidget* parent)
    : Panel(context, "references", parent), model_(new ReferencesModel(this)), tree_(new QTreeView(this)) {
  prepareTree(*tree_, model_, "references", tr("References of the selected value or op"), {.isSorted = true});
  tree_->setIndentation(14);
  setWidths(*tree_, {{0, 190}});
  fillWith(tree_);
  setList(tree_);
  connect(context_.selection, &Selection::changed, this, &ReferencesDock::invalidate);
  connect(context_.notes, &NoteBook::changed, this, &ReferencesDock::invalidate);
}

void ReferencesDock::forget() {
  job_.cancel();
  model_->show(nullptr, {});
}

void ReferencesDock::leave() {
  if (!job_.busy()) return;
  job_.cancel();
  invalidate();
}

void ReferencesDock::refresh() {
  const auto document = this->document();
  if (!document) return forget();
  const auto values = asked(*document->analysis->document, context_.selection->op(), context_.selection->value());
  job_.start([this, document, values](const Progress& progress) -> PoolJob::Deliver {
    std::vector<ValueReferences> found;
    for (auto value : values) {
      progress.check();
      found.push_back({value, referencesOf(*document->analysis, value)});
    }
    return [this, document, found = std::move(found)] {
      model_->show(document, found, context_.notes);
      tree_->expandToDepth(0);
      markSelected();
    };
  });
}

/// The row of the selected op, so that one sees where among the uses one is.
void ReferencesDock::markSelected() {
  const auto section = model_->index(0, 0);
  for (int row = 0; row < model_->rowCount(section); ++row)
    if (const auto index = model_->index(row, 0, section); opOf(index) == context_.selection->op())
      return tree_->setCurrentIndex(shownIn(*tree_, index));
}

void ReferencesDock::step(bool forward) {
  const auto section = model_->index(0, 0);
  const int count = model_->rowCount(section);
  // Where the dock is pinned, the op that it is about stays, and the row that one went to last says where one is.
  const auto current = ofModel(tree_->currentIndex());
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
    tree_->setCurrentIndex(shownIn(*tree_, index));
    Q_EMIT jumpRequested(op);
    context_.selection->select(op, value);  // stays with the value, so that the next step goes on along its uses
    return;
  }
}

}  // namespace retrograd::views
