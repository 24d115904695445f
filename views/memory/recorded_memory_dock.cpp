#include "views/memory/recorded_memory_dock.h"

#include <QFileInfo>
#include <QHeaderView>
#include <QVBoxLayout>
#include <algorithm>
#include <span>

#include "views/models/tree_model.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/elided_label.h"
#include "views/widgets/flow_layout.h"
#include "views/widgets/item_view.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {
namespace {

constexpr std::size_t mostRows = 1000;

QString sizeText(std::uint64_t bytes) { return bytesText(static_cast<std::int64_t>(bytes)); }

QString signedText(std::int64_t bytes) {
  if (bytes == 0) return bytesText(0);
  return (bytes < 0 ? QStringLiteral("\u2212") : QStringLiteral("+")) + bytesText(bytes < 0 ? -bytes : bytes);
}

QStandardItem* bytesCell(std::uint64_t bytes) { return numberCell(sizeText(bytes), static_cast<double>(bytes)); }

constexpr int lineRole = Qt::UserRole + 40;        // of a finding: its line of Python
constexpr int allocationRole = Qt::UserRole + 41;  // of a block: which allocation of the history

void addFinding(QStandardItemModel& model, const MemoryFinding& finding) {
  auto* kind = textCell(toQt(retrograd::name(finding.kind)).replace(QLatin1Char('_'), QLatin1Char(' ')));
  kind->setData(toQt(finding.line), lineRole);
  model.appendRow({kind, bytesCell(finding.bytes), textCell(toQt(finding.text))});
}

QIcon swatch(const QColor& color) {
  QPixmap square(11, 11);
  square.fill(color);
  return {square};
}

QTreeView* makeTree(QStandardItemModel* model, const char* name, const QString& title, TreeLook look, QWidget* parent) {
  auto* tree = new QTreeView(parent);
  prepareTree(*tree, model, name, title, look);
  return tree;
}

}  // namespace

RecordedMemoryDock::RecordedMemoryDock(ViewContext context, OpenMemory* memory, const Actions& actions, QWidget* parent)
    : Panel(context, "recorded-memory", parent),
      memory_(memory),
      view_(new MemoryHistoryView(context.theme, this)),
      groups_(new QStandardItemModel(this)),
      blocks_(new QStandardItemModel(this)),
      findings_(new QStandardItemModel(this)) {
  auto* split = new QSplitter(Qt::Vertical, this);
  split->setChildrenCollapsible(false);
  split->addWidget(view_);
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addWidget(makeControls(actions));
  split->addWidget(makeLists());
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  layout->addWidget(split, 1);
  connect(memory_, &OpenMemory::changed, this, &RecordedMemoryDock::invalidate);
  connect(memory_, &OpenMemory::busyChanged, this, &RecordedMemoryDock::tell);
  connect(view_, &MemoryHistoryView::picked, this, &RecordedMemoryDock::askForMoment);
  connect(context_.theme, &Theme::changed, this, &RecordedMemoryDock::invalidate);
  connect(context_.selection, &Selection::changed, this, [this] {
    if (inSight()) markBlocks();
  });
  showGroupings();
  tell();
}

QWidget* RecordedMemoryDock::makeControls(const Actions& actions) {
  auto* controls = new QWidget(this);
  auto* row = withMargins(new FlowLayout(controls), {6, 4, 6, 2});
  by_ = makeBox(controls, "memory-by", tr("How to stack the history"));
  by_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  device_ = makeBox(controls, "memory-device", tr("The GPU whose history is shown"));
  row->addWidget(by_);
  row->addWidget(device_);
  for (auto* action : {actions.open, actions.compare, actions.close}) row->addWidget(commandButton(action, this));
  auto* all = new QWidget(this);
  auto* layout = withMargins(new QVBoxLayout(all), {0, 0, 0, 2}, 1);
  layout->addWidget(controls);
  for (auto** label : {&caption_, &prediction_}) {
    *label = new ElidedLabel(all);
    (*label)->setContentsMargins(8, 0, 8, 0);
    layout->addWidget(*label);
  }
  caption_->setObjectName(QStringLiteral("recorded-memory-caption"));
  prediction_->setObjectName(QStringLiteral("recorded-memory-prediction"));
  prediction_->hide();
  connect(by_, &QComboBox::activated, this,
          [this](int at) { memory_->setGrouping(static_cast<MemoryGrouping>(by_->itemData(at).toInt())); });
  connect(device_, &QComboBox::activated, this,
          [this](int at) { memory_->setDevice(static_cast<std::size_t>(device_->itemData(at).toInt())); });
  return all;
}

QWidget* RecordedMemoryDock::makeLists() {
  groupsTree_ = makeTree(groups_, "memory-groups", tr("What was held at the chosen moment"),
                         {.isFlat = true, .isSorted = true}, this);
  blocksTree_ = makeTree(blocks_, "memory-blocks", tr("Blocks that were held at the chosen moment"),
                         {.isFlat = true, .isSorted = true}, this);
  findingsTree_ = makeTree(findings_, "memory-findings", tr("Findings of the recorded memory"),
                           {.isFlat = true, .wraps = true}, this);
  groupsTree_->header()->setStretchLastSection(false);
  groupsTree_->setTextElideMode(Qt::ElideMiddle);  // of a line its file and its function
  groupColumns_ = new NamesFirst(groupsTree_, 20);
  tabs_ = new QTabWidget(this);
  tabs_->setDocumentMode(true);
  tabs_->setAccessibleName(tr("Findings, blocks and addresses"));
  tabs_->addTab(findingsTree_, tr("Findings"));
  tabs_->addTab(blocksTree_, tr("Blocks"));
  addresses_ = new AddressMapPanel(context_.theme, tabs_);
  tabs_->addTab(addresses_, tr("Addresses"));
  auto* enlarge = named(new QToolButton(tabs_), "memory-enlarge");
  enlarge->setText(tr("Enla&rge"));
  enlarge->setToolTip(tr("Findings, blocks and addresses get the room of the chart; again: the chart is back"));
  enlarge->setCheckable(true);
  enlarge->setFocusPolicy(Qt::StrongFocus);
  tabs_->setCornerWidget(enlarge);
  connect(enlarge, &QToolButton::toggled, this, &RecordedMemoryDock::enlargeTabs);
  lists_ = new QSplitter(this);
  lists_->setChildrenCollapsible(false);
  lists_->addWidget(groupsTree_);
  lists_->addWidget(tabs_);
  for (int part : {0, 1}) lists_->setStretchFactor(part, 1);
  addList(blocksTree_);
  addList(findingsTree_);
  setList(groupsTree_);
  connect(groupsTree_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          &RecordedMemoryDock::askForBlocks);
  connect(blocksTree_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& row) {
    if (row.isValid()) addresses_->choose(row.siblingAtColumn(0).data(allocationRole).toInt());
  });
  connect(addresses_, &AddressMapPanel::chosen, this, [this](std::int32_t allocation) {
    chooseBlock(allocation);
    if (const auto op = makerOf(allocation)) context_.selection->select(op);
  });
  connect(addresses_, &AddressMapPanel::activated, this, [this](std::int32_t allocation) {
    if (const auto op = makerOf(allocation)) Q_EMIT jumpRequested(op);
  });
  connect(addresses_, &AddressMapPanel::shown, this, &RecordedMemoryDock::markBlocks);
  return lists_;
}

void RecordedMemoryDock::enlargeTabs(bool on) {
  view_->setVisible(!on);
  groupsTree_->setVisible(!on);
}

void RecordedMemoryDock::showGroupings() {
  const bool isJoined = memory_->shown().recorded && memory_->shown().recorded->join;
  const std::vector<std::pair<MemoryGrouping, QString>> choices{{MemoryGrouping::category, tr("By category")},
                                                                {MemoryGrouping::line, tr("By line")},
                                                                {MemoryGrouping::module, tr("By module")},
                                                                {MemoryGrouping::holder, tr("By what it is held for")}};
  by_->clear();
  for (const auto& [by, text] : choices)
    if (by != MemoryGrouping::holder || isJoined) by_->addItem(text, static_cast<int>(by));
  by_->setCurrentIndex(std::max(0, by_->findData(static_cast<int>(memory_->grouping()))));
}

void RecordedMemoryDock::showDevices() {
  const auto& recorded = memory_->shown().recorded;
  device_->clear();
  const auto count = recorded ? recorded->snapshot->events.size() : 0;
  for (std::size_t i = 0; i < count; ++i)
    if (recorded->snapshot->events[i].size() > 0 || i == recorded->device)
      device_->addItem(tr("GPU %1").arg(i), static_cast<int>(i));
  device_->setVisible(device_->count() > 1);
  if (recorded) device_->setCurrentIndex(device_->findData(static_cast<int>(recorded->device)));
}

void RecordedMemoryDock::refresh() {
  const auto& shown = memory_->shown();
  view_->set(shown, memory_->other());
  showGroupings();
  showDevices();
  showFindings();
  lists_->setVisible(shown.recorded != nullptr);
  if (!shown.recorded) {
    shownOf_.reset();
    moment_ = {};
    momentJob_.cancel();
    groups_->clear();
    blocks_->clear();
    addresses_->clear();
    return tell();
  }
  if (shownOf_ != shown.read) {
    shownOf_ = shown.read;
    moment_.event = shown.recorded->first();
    if (moment_.event >= 0) view_->setCurrent(static_cast<std::size_t>(moment_.event));
  }
  askForMoment();
}

void RecordedMemoryDock::leave() {
  momentJob_.cancel();
  blocksJob_.cancel();
  addresses_->cancel();
}

QString RecordedMemoryDock::emptyText() const {
  return memory_->shown().recorded ? tr("Nothing was held then") : tr("No snapshot is open");
}

void RecordedMemoryDock::open(const QString& path) {
  Q_EMIT roomWanted();
  memory_->open(path);
}

void RecordedMemoryDock::goToPeak() {
  if (!memory_->shown().recorded || memory_->shown().recorded->history.peakEvent < 0) return;
  view_->setCurrent(static_cast<std::size_t>(memory_->shown().recorded->history.peakEvent));
  askForMoment();
}

void RecordedMemoryDock::goToFailed() {
  if (!memory_->shown().recorded || memory_->shown().recorded->failed < 0) return;
  tabs_->setCurrentWidget(addresses_);
  view_->setCurrent(static_cast<std::size_t>(memory_->shown().recorded->failed));
  askForMoment();
}

void RecordedMemoryDock::showFindings() {
  findings_->clear();
  findings_->setHorizontalHeaderLabels({tr("Finding"), tr("Bytes"), tr("What")});
  const auto& recorded = memory_->shown().recorded;
  const auto count = recorded ? recorded->findings.size() : 0;
  for (std::size_t i = 0; i < count; ++i) addFinding(*findings_, recorded->findings[i]);
  if (count == 0)
    findings_->appendRow({textCell(tr("none")), textCell({}), textCell(tr("No leak, growth, fragmentation or waste"))});
  auto* header = findingsTree_->header();
  header->setStretchLastSection(false);
  for (const int column : {0, 1}) header->setSectionResizeMode(column, QHeaderView::ResizeToContents);
  header->setSectionResizeMode(2, QHeaderView::Stretch);
  tabs_->setTabText(0, count > 0 ? tr("Findings (%1)").arg(count) : tr("Findings"));
}

void RecordedMemoryDock::tell() {
  const auto& recorded = memory_->shown().recorded;
  caption_->setText(!memory_->busyText().isEmpty() ? memory_->busyText() : recorded ? momentText() : QString());
  const auto prediction = recorded ? predictionText() : QString();
  prediction_->setText(prediction);
  prediction_->setVisible(!prediction.isEmpty());
}

QString RecordedMemoryDock::momentText() const {
  const auto& recorded = *memory_->shown().recorded;
  const auto file = QFileInfo(toQt(recorded.path)).fileName();
  if (memory_->other().recorded) {
    const auto& other = *memory_->other().recorded;
    const auto more =
        static_cast<std::int64_t>(other.history.peakBytes) - static_cast<std::int64_t>(recorded.history.peakBytes);
    return tr("%1: peak %2; %3: peak %4 (%5)")
        .arg(file, sizeText(recorded.history.peakBytes), QFileInfo(toQt(other.path)).fileName(),
             sizeText(other.history.peakBytes), signedText(more));
  }
  const auto at = moment_.event < 0                  ? tr("before the first event")
                  : moment_.event == recorded.failed ? tr("when a request failed (event %1)").arg(moment_.event)
                  : moment_.event == recorded.history.peakEvent ? tr("at the peak (event %1)").arg(moment_.event)
                                                                : tr("after event %1").arg(moment_.event);
  auto text = tr("%1: %2 held %3").arg(file, sizeText(moment_.bytes), at);
  if (!recorded.join) return memory_->notJoined().isEmpty() ? text : text + QStringLiteral(". ") + memory_->notJoined();
  if (!agrees(*recorded.join)) return text + tr(". Nothing in it agrees with the open model: is it of this program?");
  const auto bytes = [&](JoinLevel level) { return sizeText(moment_.levels[level]); };
  return text + tr(". Joined: %1 exact, %2 aligned, %3 unknown")
                    .arg(bytes(JoinLevel::exact), bytes(JoinLevel::aligned), bytes(JoinLevel::unknown));
}

QString RecordedMemoryDock::predictionText() const {
  const auto& prediction = memory_->shown().prediction;
  if (!prediction || prediction->event < 0 || memory_->other().recorded) return {};
  QStringList gaps;
  for (const auto& gap : prediction->gaps)
    if (gaps.size() < 4) gaps << tr("%1 %2").arg(signedText(gap.bytes), toQt(gap.reason));
  return tr("Predicted at the peak: %1 (dotted), recorded: %2. The difference: %3")
      .arg(sizeText(prediction->predictedBytes), sizeText(prediction->recordedBytes), gaps.join(QStringLiteral(", ")));
}

void RecordedMemoryDock::askForMoment() {
  const auto shown = memory_->shown(), other = memory_->other();
  if (!shown.recorded || !inSight()) return;
  const auto current = view_->current();
  const auto event = current ? static_cast<std::int64_t>(*current) : shown.recorded->first();
  momentJob_.start([this, shown, other, event](const Progress&) -> PoolJob::Deliver {
    Moment moment{.event = event};
    moment.groups = memoryGroupsAt(shown.recorded->history, *shown.grouped, event);
    for (const auto& group : moment.groups) moment.bytes += group.bytes;
    if (shown.recorded->join)
      for (const auto& each : shown.recorded->join->allocations)
        if (each.what.isHeldAfter(event)) moment.levels[each.level] += each.what.size;
    if (other.recorded)
      moment.pairs =
          memoryDifference(memoryGroupsAt(shown.recorded->history, *shown.grouped, shown.recorded->history.peakEvent),
                           memoryGroupsAt(other.recorded->history, *other.grouped, other.recorded->history.peakEvent));
    return [this, moment = std::move(moment)] { showMoment(moment); };
  });
}

void RecordedMemoryDock::showMoment(const Moment& moment) {
  if (wanted_.isEmpty()) wanted_ = chosenGroup();
  moment_ = moment;
  groups_->clear();
  if (memory_->other().recorded) {
    showPairs(moment.pairs);
  } else {
    groups_->setHorizontalHeaderLabels({tr("Held by"), tr("Bytes"), tr("Share"), tr("Blocks"), tr("Category")});
    for (const auto& group : moment.groups) {
      if (static_cast<std::size_t>(groups_->rowCount()) == mostRows) break;
      const double share =
          moment.bytes == 0 ? 0 : 100 * static_cast<double>(group.bytes) / static_cast<double>(moment.bytes);
      auto* title = groupCell(group.name);
      groups_->appendRow({title, bytesCell(group.bytes), numberCell(tr("%1 %").arg(share, 0, 'f', 1), share),
                          numberCell(QString::number(group.count), static_cast<double>(group.count)),
                          textCell(toQt(retrograd::name(group.category)))});
    }
  }
  for (int column = groups_->columnCount() - 1; column > 0; --column) groupsTree_->resizeColumnToContents(column);
  groupColumns_->leaveOut(groups_->columnCount() - 1, memory_->grouping() == MemoryGrouping::category);
  chooseGroup();
  tell();
  askForBlocks();
  addresses_->show(memory_->shown(), moment.event);
}

/// With the colour of its band; a group of the second snapshot alone has none.
QStandardItem* RecordedMemoryDock::groupCell(const std::string& name) const {
  const auto& stack = *memory_->shown().stack;
  auto* item = textCell(toQt(name));
  const auto found = std::ranges::find(stack.bands(), name, &MemoryStack::Band::name);
  if (found == stack.bands().end() && (stack.bands().empty() || !stack.bands().back().name.empty())) return item;
  const auto band =
      found == stack.bands().end() ? stack.bands().size() - 1 : static_cast<std::size_t>(found - stack.bands().begin());
  item->setIcon(swatch(MemoryHistoryView::colorOf(*context_.theme, stack, band)));
  return item;
}

void RecordedMemoryDock::showPairs(const std::vector<MemoryPair>& pairs) {
  groups_->setHorizontalHeaderLabels({tr("Held by"), tr("More or less"), tr("First"), tr("Second"), tr("Category")});
  for (const auto& pair : pairs) {
    if (static_cast<std::size_t>(groups_->rowCount()) == mostRows) break;
    const auto difference = pair.difference();
    groups_->appendRow({groupCell(pair.name), numberCell(signedText(difference), static_cast<double>(difference)),
                        bytesCell(pair.before), bytesCell(pair.after), textCell(toQt(retrograd::name(pair.category)))});
  }
}

void RecordedMemoryDock::chooseGroup() {
  const auto found = groups_->findItems(std::exchange(wanted_, {}));
  if (!found.isEmpty()) groupsTree_->setCurrentIndex(shownIn(*groupsTree_, found.front()->index()));
}

QString RecordedMemoryDock::chosenGroup() const {
  const auto current = groupsTree_->currentIndex();
  return current.isValid() ? current.siblingAtColumn(0).data().toString() : QString();
}

void RecordedMemoryDock::askForBlocks() {
  const auto shown = memory_->shown();
  if (!shown.recorded || !inSight()) return;
  blocksJob_.start(
      [this, shown, event = moment_.event, group = chosenGroup().toStdString()](const Progress&) -> PoolJob::Deliver {
        const auto& recorded = *shown.recorded;
        const auto& allocations = recorded.history.allocations;
        std::vector<std::size_t> held;
        for (std::size_t i = 0; i < allocations.size(); ++i)
          if (allocations[i].isHeldAfter(event) &&
              (group.empty() || shown.grouped->names[shown.grouped->groups[i]] == group))
            held.push_back(i);
        std::ranges::stable_sort(held, std::greater(), [&](auto i) { return allocations[i].size; });
        std::vector<Block> blocks;
        for (const auto i : std::span(held).first(std::min(held.size(), mostRows)))
          blocks.push_back({static_cast<std::int32_t>(i), blockWords(recorded, i)});
        return [this, blocks = std::move(blocks), all = held.size()] { showBlocks(blocks, all); };
      });
}

void RecordedMemoryDock::showBlocks(const std::vector<Block>& blocks, std::size_t all) {
  blocks_->clear();
  const bool isJoined = memory_->shown().recorded && memory_->shown().recorded->join;
  QStringList titles{tr("Bytes"), isJoined ? tr("Made by") : tr("Category"), tr("Line"), tr("Made"), tr("Freed")};
  if (isJoined) titles << tr("Held for") << tr("Could be freed") << tr("Join");
  blocks_->setHorizontalHeaderLabels(titles);
  for (const auto& [allocation, words] : blocks) {
    QList<QStandardItem*> row{bytesCell(words.bytes), textCell(words.maker), textCell(words.line), textCell(words.made),
                              textCell(words.freed)};
    if (isJoined) row << textCell(words.holder) << textCell(words.could) << textCell(words.level);
    row[0]->setData(allocation, allocationRole);
    const auto op = makerOf(allocation);
    for (auto* each : row) each->setData(op ? op.index : -1, opRole);
    blocks_->appendRow(row);
  }
  for (int column = 0; column < blocks_->columnCount(); ++column) blocksTree_->resizeColumnToContents(column);
  tabs_->setTabText(
      1, all > blocks.size() ? tr("Blocks (%1 of %2)").arg(blocks.size()).arg(all) : tr("Blocks (%1)").arg(all));
}

BoundSymbolId RecordedMemoryDock::makerOf(std::int32_t allocation) const {
  const auto open = document();
  return open ? memory_->shown().makerOf(allocation, open->analysis) : BoundSymbolId();
}

/// The op whose memory the selected one gives: another where that makes a view.
BoundSymbolId RecordedMemoryDock::selectedMaker() const {
  const auto op = context_.selection->op();
  const auto open = document();
  if (!open || !op) return op;
  const auto& document = *open->analysis->document;
  const auto outputs = document.outputs(op);
  if (outputs.empty() || !document.isTensor(outputs[0]) || !document.value(outputs[0]).storage) return op;
  const auto first = document.storage(document.value(outputs[0]).storage).first;
  const auto maker = first ? document.value(first).producer : BoundSymbolId();
  return maker ? maker : op;
}

void RecordedMemoryDock::markBlocks() {
  std::set<std::int32_t> marked;
  const auto op = selectedMaker();
  for (const auto& piece : addresses_->view().picture().layout.pieces)
    if (op && piece.allocation >= 0 && makerOf(piece.allocation) == op) marked.insert(piece.allocation);
  addresses_->setMarked(std::move(marked));
}

std::int32_t RecordedMemoryDock::blockOfSelection() const {
  const auto open = document();
  return open ? memory_->shown().blockOf(selectedMaker(), open->analysis) : LaidOutPiece::free;
}

void RecordedMemoryDock::goToBlock() {
  const auto block = blockOfSelection();
  if (block < 0) return;
  const auto& allocation = memory_->shown().recorded->history.allocations[block];
  tabs_->setCurrentWidget(addresses_);
  if (allocation.from >= 0) view_->setCurrent(static_cast<std::size_t>(allocation.from));
  addresses_->chooseNext(block);
  askForMoment();
}

void RecordedMemoryDock::chooseBlock(std::int32_t allocation) {
  const auto found = blocks_->match(blocks_->index(0, 0), allocationRole, allocation, 1, Qt::MatchExactly);
  blocksTree_->setCurrentIndex(found.isEmpty() ? QModelIndex() : shownIn(*blocksTree_, found.front()));
}

void RecordedMemoryDock::activate(const QModelIndex& row) {
  if (row.model() != findings_) return Panel::activate(row);
  const auto line = row.siblingAtColumn(0).data(lineRole).toString();
  if (line.isEmpty()) return memory_->shown().recorded->failed >= 0 ? goToFailed() : goToPeak();
  wanted_ = line;
  if (memory_->grouping() == MemoryGrouping::line) return chooseGroup();
  memory_->setGrouping(MemoryGrouping::line);  // which shows the moment again
}

}  // namespace retrograd::views
