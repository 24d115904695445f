#include "views/docks/stages_dock.h"

#include <QAction>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QPainter>
#include <QVBoxLayout>
#include <array>

#include "views/models/stages_model.h"
#include "views/text/format.h"
#include "views/theme/stage_colors.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/elided_label.h"
#include "views/widgets/flow_layout.h"
#include "views/widgets/item_view.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {
namespace {

const QString tabKey = QStringLiteral("tab");

/// Cells of the pipeline's tables: behind a figure a bar as long as its share, before a stage its colour.
class StageCells : public RowDelegate {
 public:
  StageCells(Theme* theme, QTreeView* tree) : RowDelegate(tree), theme_(theme) {}
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const auto share = index.data(shareRole);
    const auto swatch = index.data(swatchRole);
    const bool selected = option.state & QStyle::State_Selected;
    auto text = option;
    if (swatch.isValid()) text.rect.adjust(18, 0, 0, 0);
    if (share.isValid() && !selected) {
      const auto area = option.rect.adjusted(3, 2, -3, -2);
      const int width = static_cast<int>(area.width() * share.toDouble());
      painter->fillRect(QRect(area.left(), area.top(), width, area.height()),
                        stageFill(index.data(stageRole).toInt(), theme_->dark()));
    }
    if (swatch.isValid()) {
      if (selected)
        painter->fillRect(option.rect, option.palette.brush(
                                           option.state & QStyle::State_Active ? QPalette::Active : QPalette::Inactive,
                                           QPalette::Highlight));
      const QRect box(option.rect.left() + 5, option.rect.center().y() - 5, 11, 11);
      painter->fillRect(box, stageColor(swatch.toInt(), theme_->dark()));
    }
    RowDelegate::paint(painter, text, index);
  }

 private:
  Theme* theme_;
};

QString pointsText(const CutRequest& request) {
  QStringList points;
  for (const auto& point : request.at) points << toQt(point);
  return points.join(QStringLiteral(", "));
}

}  // namespace

StagesDock::StagesDock(ViewContext context, Commands commands, QWidget* parent)
    : Panel(context, "stages", parent), plan_(context.stages) {
  setObjectName(QStringLiteral("stages"));
  bar_ = new StageBar(context_.theme, this);
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addWidget(makeControls(commands));
  layout->addWidget(makeMessage());
  layout->addWidget(bar_);
  layout->addWidget(makeTables(), 1);
  connect(plan_, &StagePlan::changed, this, &StagesDock::invalidate);
  connect(context_.selection, &Selection::changed, this, &StagesDock::selectionChanged);
  connect(bar_, &StageBar::picked, this, [this](int stage) {
    showStage(stage);
    context_.selection->select(plan_->cut()->firstOp(stage));
  });
  connect(bar_, &StageBar::activated, this, [this](int stage) { Q_EMIT jumpRequested(plan_->cut()->firstOp(stage)); });
  connect(bar_, &StageBar::cutMoved, plan_, &StagePlan::moveCut);
  setList(stagesTable_);
  refreshControls();
  refreshMessage();
}

QWidget* StagesDock::makeControls(const Commands& commands) {
  auto* line = new QWidget(this);
  how_ = makeBox(line, "stages-how", tr("How to cut"));
  how_->addItem(tr("Cut at points"), static_cast<int>(How::points));
  how_->addItem(tr("Cut into equal stages"), static_cast<int>(How::equalStages));
  points_ = named(new QLineEdit(line), "stages-points", tr("Points to cut at"));
  points_->setToolTip(
      tr("A module (h.3) or an op (#relu_4), with :after to cut behind it; several with commas between them"));
  stages_ = named(new QSpinBox(line), "stages-count", tr("Number of stages"));
  stages_->setRange(1, 999);
  stages_->setValue(4);
  of_ = new QLabel(tr("of equal"), line);
  balance_ = makeBox(line, "stages-balance", tr("What equal stages have equal"));
  balance_->addItem(tr("time, measured"), static_cast<int>(Balance::time));
  balance_->addItem(tr("time, estimated"), static_cast<int>(Balance::estimate));
  balance_->addItem(tr("parameters"), static_cast<int>(Balance::parameters));
  balance_->addItem(tr("bytes"), static_cast<int>(Balance::bytes));
  balance_->setCurrentIndex(1);
  balance_->setToolTip(tr("Measured: forward and backward are run twice first. Estimated: from the ops alone"));
  markers_ = named(new QCheckBox(line), "stages-markers", tr("Cut at the file's markers"));
  markers_->setToolTip(tr("Cut where the file has markers of torch.distributed.pipelining"));
  auto* row = withMargins(new FlowLayout(line), {6, 4, 6, 4});
  row->addWidget(how_);
  row->addWidget(points_);
  row->addWidget(stages_);
  row->addWidget(of_);
  row->addWidget(balance_);
  row->addWidget(markers_);
  for (auto* action : {commands.measure, commands.undo, commands.redo}) row->addWidget(commandButton(action, line));
  connect(how_, &QComboBox::activated, this, [this] {
    refreshControls();
    // Points are asked for when there are some.
    if (static_cast<How>(how_->currentData().toInt()) == How::equalStages) change(tr("Cut into equal stages"));
    else points_->setFocus();
  });
  connect(points_, &QLineEdit::returnPressed, this, [this] { change(tr("Cut at points")); });
  connect(stages_, &QSpinBox::valueChanged, this, [this] { change(tr("Number of stages")); });
  connect(balance_, &QComboBox::activated, this, [this] { change(tr("What stages have equal")); });
  connect(markers_, &QCheckBox::clicked, this,
          [this](bool on) { change(on ? tr("Cut at the file's markers") : tr("Leave out the file's markers")); });
  return line;
}

QComboBox* StagesDock::makeLoss() {
  auto* box = makeBox(this, "stages-loss", tr("Which output is the loss"));
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(18);
  connect(box, &QComboBox::activated, this, [this](int index) {
    plan_->chooseLoss(loss_->itemData(index).toString().toStdString());
    refreshLoss();  // until the model is there with it, or where it is refused, what was chosen before holds
  });
  return box;
}

QWidget* StagesDock::makeMessage() {
  auto* line = new QWidget(this);
  message_ = named(new WrappedLabel(line), "stages-message");
  toOp_ = named(new QToolButton(line), "stages-to-op");
  toOp_->setText(tr("Show"));
  toOp_->setToolTip(tr("Jumps to the op at which it was refused"));
  auto* row = withMargins(new QHBoxLayout(line), {8, 0, 8, 4});
  row->addWidget(message_, 1);
  row->addWidget(toOp_);
  connect(toOp_, &QToolButton::clicked, this, [this] { Q_EMIT jumpRequested(plan_->problemOp()); });
  return line;
}

QTreeView* StagesDock::makeTable(QAbstractItemModel* model, const QString& name, const char* object) {
  auto* table = new QTreeView(this);
  prepareTree(*table, model, object, name, {.isFlat = true, .isSorted = true});
  table->setItemDelegate(new StageCells(context_.theme, table));
  selectByClick(table);
  return table;
}

QWidget* StagesDock::makeTables() {
  stagesModel_ = new StagesModel(this);
  edgesModel_ = new StageEdgesModel(this);
  sharedModel_ = new SharedParametersModel(this);
  stagesTable_ = makeTable(stagesModel_, tr("Stages"), "stages-table");
  edgesTable_ = makeTable(edgesModel_, tr("Transfers"), "stages-edges");
  sharedTable_ = makeTable(sharedModel_, tr("Shared parameters"), "stages-shared");
  setWidths(*stagesTable_, {{StagesModel::stage, 84},
                            {StagesModel::ops, 60},
                            {StagesModel::time, 110},
                            {StagesModel::parameters, 120},
                            {StagesModel::activations, 84},
                            {StagesModel::saved, 76}});
  setWidths(*edgesTable_, {{StageEdgesModel::source, 68},
                           {StageEdgesModel::destination, 96},
                           {StageEdgesModel::value, 120},
                           {StageEdgesModel::type, 120},
                           {StageEdgesModel::bytes, 76},
                           {StageEdgesModel::allBytes, 106}});
  setWidths(
      *sharedTable_,
      {{SharedParametersModel::names, 170}, {SharedParametersModel::stages, 150}, {SharedParametersModel::use, 200}});
  connect(stagesTable_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& index) {
            if (index.isValid()) bar_->setCurrent(ofModel(index).row());
          });

  for (auto* table : {edgesTable_, sharedTable_}) addList(table);
  notes_ = named(new WrappedLabel(this), "stages-notes", tr("Notes"));
  notes_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  notes_->setMargin(8);
  notes_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);

  tabs_ = named(new QTabWidget(this), "stages-tabs", tr("Tables of the stages"));
  tabs_->tabBar()->setAccessibleName(tr("Tables of the stages"));
  tabs_->setDocumentMode(true);
  tabs_->addTab(stagesTable_, tr("Stages"));
  tabs_->addTab(makeCrossing(), tr("Transfers"));
  tabs_->addTab(makeSharing(), tr("Shared"));
  tabs_->addTab(notes_, tr("Notes"));
  return tabs_;
}

QWidget* StagesDock::makeCrossing() {
  microbatches_ = named(new QSpinBox(this), "stages-microbatches", tr("Microbatches"));
  microbatches_->setRange(1, 100000);
  microbatches_->setPrefix(tr("x "));
  microbatches_->setSuffix(tr(" microbatches"));
  microbatches_->setToolTip(tr("How often each value is sent in a step of training"));
  connect(microbatches_, &QSpinBox::valueChanged, edgesModel_, &StageEdgesModel::setMicrobatches);
  microbatches_->setValue(4);
  loss_ = makeLoss();
  return withLine({microbatches_, loss_}, edgesTable_);
}

QWidget* StagesDock::withLine(const QList<QWidget*>& controls, QTreeView* table) {
  auto* both = new QWidget(this);
  auto* line = withMargins(new QHBoxLayout, {6, 3, 6, 3});
  for (auto* control : controls) line->addWidget(control);
  line->addStretch(1);
  auto* layout = withMargins(new QVBoxLayout(both), {}, 0);
  layout->addLayout(line);
  layout->addWidget(table, 1);
  return both;
}

QWidget* StagesDock::makeSharing() {
  shared_ = makeBox(this, "stages-sharing", tr("How parameters that several stages use reach them"));
  shared_->addItem(tr("Each stage has a copy"), static_cast<int>(MultiUse::replicate));
  shared_->addItem(tr("The first stage sends it"), static_cast<int>(MultiUse::transmit));
  shared_->setPlaceholderText(tr("As chosen for each"));
  connect(shared_, &QComboBox::activated, this,
          [this] { plan_->shareAll(static_cast<MultiUse>(shared_->currentData().toInt())); });
  copy_ = new QAction(tr("&Copy in Each Stage"), sharedTable_);
  send_ = new QAction(tr("&Sent by the First Stage"), sharedTable_);
  connect(copy_, &QAction::triggered, this, [this] { share(MultiUse::replicate); });
  connect(send_, &QAction::triggered, this, [this] { share(MultiUse::transmit); });
  sharedTable_->addActions({copy_, send_});
  sharedTable_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  sharedTable_->installEventFilter(this);
  connect(sharedTable_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &StagesDock::refreshSharing);
  return withLine({shared_}, sharedTable_);
}

std::vector<SharedParameter> StagesDock::selectedShared() const {
  std::vector<SharedParameter> selected;
  for (const auto& index : sharedTable_->selectionModel()->selectedRows())
    selected.push_back(sharedModel_->at(ofModel(index).row()));
  return selected;
}

bool StagesDock::eventFilter(QObject* watched, QEvent* event) {
  // Space switches what is selected; where it is of both kinds, to copies.
  if (watched == sharedTable_ && event->type() == QEvent::KeyPress &&
      static_cast<QKeyEvent*>(event)->key() == Qt::Key_Space) {
    (copy_->isEnabled() ? copy_ : send_)->trigger();
    return true;
  }
  return Panel::eventFilter(watched, event);
}

CutRequest StagesDock::asked() const {
  auto request = plan_->request();
  request.at.clear();
  request.stages = 0;
  request.useMarkers = markers_->isChecked();
  if (static_cast<How>(how_->currentData().toInt()) == How::equalStages) {
    request.stages = static_cast<std::size_t>(stages_->value());
    request.balance = static_cast<Balance>(balance_->currentData().toInt());
  } else {
    for (const auto& point : points_->text().split(QLatin1Char(','), Qt::SkipEmptyParts))
      if (const auto trimmed = point.trimmed(); !trimmed.isEmpty()) request.at.push_back(trimmed.toStdString());
  }
  return request;
}

void StagesDock::change(const QString& what) {
  if (refreshing_) return;
  plan_->change(asked(), what);
}

void StagesDock::refresh() {
  plan_->begin();
  refreshing_ = true;
  const auto& request = plan_->request();
  how_->setCurrentIndex(how_->findData(static_cast<int>(request.stages > 0 ? How::equalStages : How::points)));
  points_->setText(pointsText(request));
  if (request.stages > 0) {
    stages_->setValue(static_cast<int>(request.stages));
    balance_->setCurrentIndex(balance_->findData(static_cast<int>(request.balance)));
  }
  markers_->setChecked(request.useMarkers);
  shared_->setCurrentIndex(
      request.options.multiUseOf.empty() ? shared_->findData(static_cast<int>(request.options.multiUse)) : -1);
  refreshLoss();
  refreshControls();
  refreshing_ = false;
  refreshMessage();
  refreshTables();
  refreshSharing();
}

void StagesDock::refreshLoss() {
  const auto& outputs = plan_->outputs();
  loss_->clear();
  loss_->addItem(tr("Loss: every output"), QString());
  loss_->setItemData(0,
                     tr("The gradient begins at each output: with 1 where it is a single number and the only one, else "
                        "with numbers drawn from the seed"),
                     Qt::ToolTipRole);
  for (const auto& output : outputs) {
    const auto place = toQt(output.place), value = toQt(output.value);
    loss_->addItem(
        place == value || value.isEmpty() ? tr("Loss: %1").arg(place) : tr("Loss: %1 (%2)").arg(place, value), place);
    loss_->setItemData(loss_->count() - 1, toQt(output.refusal.empty() ? output.type : output.refusal),
                       Qt::ToolTipRole);
  }
  const auto& document = context_.controller->document();
  const auto chosen = document ? toQt(document->request.loss) : QString();
  if (plan_->loss() < 0 && !chosen.isEmpty())
    loss_->insertItem(1, tr("Loss: %1").arg(chosen), chosen);  // what the model returns is still to be found out
  loss_->setCurrentIndex(chosen.isEmpty() ? 0 : plan_->loss() < 0 ? 1 : plan_->loss() + 1);
  loss_->setToolTip(
      tr("The output at which the gradient begins, with 1, for the stages and the joint trace. A choice derives the "
         "model again"));
}

void StagesDock::refreshSharing() {
  const auto selected = selectedShared();
  for (auto [action, use] : {std::pair(copy_, MultiUse::replicate), std::pair(send_, MultiUse::transmit)}) {
    const bool differs =
        std::ranges::any_of(selected, [use = use](const SharedParameter& parameter) { return parameter.use != use; });
    const auto reason = selected.empty() ? tr("No parameter is selected")
                        : plan_->busy()  ? tr("The model is being cut")
                        : differs        ? QString()
                                         : tr("They are shared in this way");
    action->setEnabled(reason.isEmpty());
    action->setToolTip(
        reason.isEmpty()
            ? use == MultiUse::transmit
                  ? tr("The first stage that uses it holds it and sends it to the others, which send its gradient back")
                  : tr("Each stage that uses it holds it; the gradients have to be summed before the optimizer's step")
            : reason);
    action->setStatusTip(action->toolTip());
  }
}

void StagesDock::refreshControls() {
  const bool open = context_.controller->document() != nullptr;
  const bool equal = static_cast<How>(how_->currentData().toInt()) == How::equalStages;
  points_->setVisible(!equal);
  for (QWidget* widget : {static_cast<QWidget*>(stages_), static_cast<QWidget*>(of_), static_cast<QWidget*>(balance_)})
    widget->setVisible(equal);
  for (QWidget* widget : {static_cast<QWidget*>(how_), static_cast<QWidget*>(points_), static_cast<QWidget*>(stages_),
                          static_cast<QWidget*>(balance_), static_cast<QWidget*>(markers_),
                          static_cast<QWidget*>(shared_), static_cast<QWidget*>(loss_)})
    widget->setEnabled(open);
  const auto count = plan_->markers();
  markers_->setVisible(count > 0);
  markers_->setText(tr("File markers: %1").arg(count));
  points_->setPlaceholderText(tr("h.2, #relu_4:after"));
}

void StagesDock::refreshMessage() {
  QString text;
  if (!context_.controller->document()) text = tr("Open a model to cut it into stages.");
  else if (!plan_->problem().isEmpty()) text = QStringLiteral("! ") + plan_->problem();
  else if (plan_->measuring() && plan_->busy()) text = tr("Measuring what the ops take...");
  else if (plan_->busy()) text = tr("Cutting...");
  else if (!plan_->hasMarks())
    text =
        tr("The model is not cut. Cut it into equal stages, at points, or before an op that you choose in a "
           "listing (K).");
  message_->setText(text);
  message_->parentWidget()->setVisible(!text.isEmpty());
  toOp_->setVisible(!plan_->problem().isEmpty() && plan_->problemOp().valid());
}

void StagesDock::refreshTables() {
  const auto& cut = plan_->cut();
  if (cut == stagesModel_->cut()) return;
  stagesModel_->show(cut);
  edgesModel_->show(cut);
  const auto selected = selectedShared();
  sharedModel_->show(cut);
  for (const auto& parameter : selected)  // so that they can be switched back at once
    if (const int row = sharedModel_->rowOf(parameter.names.front()); row >= 0)
      sharedTable_->selectionModel()->setCurrentIndex(shownIn(*sharedTable_, sharedModel_->index(row, 0)),
                                                      QItemSelectionModel::Select | QItemSelectionModel::Rows);
  bar_->show(cut);
  bar_->setVisible(cut != nullptr && cut->stages() > 1);
  QStringList notes;
  if (cut)
    for (const auto& note : cut->notes) notes << toQt(note);
  notes_->setText(notes.isEmpty() ? tr("Nothing to note.") : notes.join(QStringLiteral("\n\n")));
  const std::array titles{tr("Stages"), tr("Transfers"), tr("Shared"), tr("Notes")};
  const std::array counts{stagesModel_->rowCount(), edgesModel_->rowCount(), sharedModel_->rowCount(),
                          static_cast<int>(notes.size())};
  for (int i = 0; i < tabs_->count(); ++i) tabs_->setTabText(i, tr("%1 (%2)").arg(titles[i]).arg(counts[i]));
  if (!bar_->hasFocus()) selectionChanged();  // there the chosen stage stays chosen while its border moves
}

void StagesDock::selectionChanged() {
  if (!inSight() || !plan_->cut()) return;
  if (const int stage = plan_->cut()->stageOf(context_.selection->op()); stage >= 0) showStage(stage);
}

QVariantMap StagesDock::saveState() const {
  auto state = Panel::saveState();
  state[tabKey] = tabs_->currentIndex();
  return state;
}

void StagesDock::restoreState(const QVariantMap& state) {
  Panel::restoreState(state);
  tabs_->setCurrentIndex(state.value(tabKey).toInt());
}

void StagesDock::showStage(int stage) {
  bar_->setCurrent(stage);
  if (ofModel(stagesTable_->currentIndex()).row() != stage)
    stagesTable_->setCurrentIndex(shownIn(*stagesTable_, stagesModel_->index(stage, 0)));
}

}  // namespace retrograd::views
