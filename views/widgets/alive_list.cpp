#include "views/widgets/alive_list.h"

#include <QHeaderView>
#include <QScreen>
#include <QScrollBar>
#include <QStandardItemModel>
#include <QVBoxLayout>

#include "views/text/format.h"
#include "views/text/line_text.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {
namespace {

constexpr std::size_t mostRows = 200;

}  // namespace

QString labelOf(MemoryUse use) {
  switch (use) {
    case MemoryUse::saved: return tr("saved");
    case MemoryUse::result: return tr("results");
    case MemoryUse::gradient: return tr("gradients");
    case MemoryUse::forward: return tr("forward temporaries");
    case MemoryUse::backward: return tr("backward temporaries");
  }
  return {};
}

std::vector<const StorageLife*> AliveList::alive(const MemoryTimeline& timeline, std::size_t position,
                                                 std::size_t most) {
  std::vector<const StorageLife*> alive;
  for (const auto& life : timeline.lives)
    if (life.from <= position && position < life.to) alive.push_back(&life);
  const auto count = std::min(most, alive.size());
  std::partial_sort(alive.begin(), alive.begin() + count, alive.end(),
                    [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  alive.resize(count);
  return alive;
}

AliveList::AliveList(const OpenDocument& document, const MemoryTimeline& timeline, std::size_t position,
                     QWidget* parent)
    : QDialog(parent, Qt::Popup) {
  const auto& values = *document.analysis->document;
  const auto name = tr("Tensors alive after #%1").arg(document.program.opAt(position).index);
  setObjectName(QStringLiteral("alive-list"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(name);
  setAccessibleName(name);
  auto* tree = new QTreeView(this);
  auto* rows = new QStandardItemModel(0, 4, tree);
  rows->setHorizontalHeaderLabels({tr("Bytes"), tr("Value"), tr("Use"), tr("Made by")});
  for (const auto* life : alive(timeline, position, mostRows)) {
    const auto maker = document.program.opAt(life->from);
    const auto made =
        maker ? QStringLiteral("#%1  %2").arg(QString::number(maker.index), shortOpName(values, maker)) : QString();
    QList<QStandardItem*> cells;
    for (const auto& text : {bytesText(life->bytes), toQt(values.displayName(life->value)), labelOf(life->use), made}) {
      cells << new QStandardItem(text);
      cells.back()->setData(maker.index, opRole);
    }
    cells.front()->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    rows->appendRow(cells);
  }
  prepareTree(*tree, rows, {}, name, {.isFlat = true});
  tree->setFrameShape(QFrame::StyledPanel);
  tree->header()->setStretchLastSection(false);  // a stretched section doesn't take the width of its content
  connect(tree, &QTreeView::activated, this, [this](const QModelIndex& row) {
    const auto op = opOf(row);
    close();
    if (op) Q_EMIT chosen(op);
  });
  auto* layout = withMargins(new QVBoxLayout(this), {1, 1, 1, 1});
  layout->addWidget(tree);
  tree->setCurrentIndex(rows->index(0, 0));
  tree->setFocus();
  tree->ensurePolished();  // columns are measured in the font that they are drawn in
  for (int column = 0; column < rows->columnCount(); ++column) tree->resizeColumnToContents(column);
  resize(tree->header()->length() + tree->verticalScrollBar()->sizeHint().width() + 2 * tree->frameWidth() + 2, 240);
}

void AliveList::showAt(const QPoint& at, const QScreen& screen) {
  const auto room = screen.availableGeometry().adjusted(0, 0, -4, -4);  // a window system adds a frame
  resize(std::min(width(), room.width()), height());
  const QPoint last = room.bottomRight() - rect().bottomRight();
  move(std::clamp(at.x(), room.left(), std::max(room.left(), last.x())),
       std::clamp(at.y(), room.top(), std::max(room.top(), last.y())));
  show();
}

}  // namespace retrograd::views
