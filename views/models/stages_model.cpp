#include "views/models/stages_model.h"

#include <algorithm>
#include <array>

#include "views/text/format.h"
#include "views/text/line_text.h"

namespace retrograd::views {
namespace {

constexpr std::array<TableColumn, StagesModel::columns> stageColumns{
    {{"Stage", "Number, counted along the model"},
     {"Ops", "Ops of the computation", true},
     {"Time, estimated", "Share of forward and backward, estimated from the ops; Measure runs them", true},
     {"Parameters", "Elements and bytes of the parameters that it holds", true},
     {"Activations", "Memory that its ops' results take, each storage once", true},
     {"Saved", "Of that, what the whole model's forward keeps for the backward", true},
     {"Begins at", "Its first op"}}};

constexpr std::array<TableColumn, StageEdgesModel::columns> edgeColumns{
    {{"From", "The stage that makes it"},
     {"To", "The stage that uses it; \u21e5 marks one that is not the next"},
     {"Value", "Its name in the file"},
     {"Type", "Element type and shape"},
     {"Bytes", "For one microbatch", true},
     {"x Microbatches", "For all microbatches", true},
     {"Gradient", "Whether its gradient goes the way back"}}};

constexpr std::array<TableColumn, SharedParametersModel::columns> sharedColumns{
    {{"Parameter", "All names of a tied one"},
     {"Stages", "The stages that use it"},
     {"How it is shared",
      "Copies need their gradients summed before the optimizer's step. Space switches the selected parameters, so does "
      "the context menu"},
     {"Bytes", "Of one copy", true}}};

QString countText(std::int64_t count) {
  if (count < 10000) return QString::number(count);
  if (count < 10000000)
    return QStringLiteral("%1 k").arg(static_cast<double>(count) / 1e3, 0, 'f', count < 100000 ? 1 : 0);
  return QStringLiteral("%1 M").arg(static_cast<double>(count) / 1e6, 0, 'f', count < 100000000 ? 1 : 0);
}

}  // namespace

// --- stages ---

StagesModel::StagesModel(QObject* parent) : TableModel(stageColumns, parent) {}

double StagesModel::amount(const StageFacts& facts, int column) {
  switch (column) {
    case ops: return static_cast<double>(facts.ops);
    case time: return facts.time();
    case parameters: return static_cast<double>(facts.parameterElements);
    case activations: return static_cast<double>(facts.activationBytes);
    case saved: return static_cast<double>(facts.savedBytes);
    default: return 0;
  }
}

QString StagesModel::timeText(const StageCut& cut, double time) {
  if (cut.measured) return secondsText(time);
  double all = 0;
  for (const auto& facts : cut.facts) all += facts.time();
  return all > 0 ? tr("%1 %").arg(100 * time / all, 0, 'f', 1) : tr("not known");
}

QVariant StagesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto s = index.row();
  const auto& facts = cut_->facts[s];
  const auto op = cut_->firstOp(s);
  switch (role) {
    case stageRole: return s;
    case sortRole:
      return index.column() > stage && index.column() <= saved ? QVariant(amount(facts, index.column())) : QVariant();
    case swatchRole: return index.column() == stage ? QVariant(s) : QVariant();
    case opRole: return op.index;
    case Qt::TextAlignmentRole: return alignmentOf(index.column());
    case shareRole: {
      double most = 0;
      for (const auto& other : cut_->facts) most = std::max(most, amount(other, index.column()));
      return most > 0 ? QVariant(amount(facts, index.column()) / most) : QVariant();
    }
    case Qt::ToolTipRole:
      switch (index.column()) {
        case time:
          return tr("Forward %1, backward %2").arg(timeText(*cut_, facts.forward), timeText(*cut_, facts.backward));
        case parameters:
          return tr("%1 elements in %2 tensors, %3; buffers %4")
              .arg(facts.parameterElements)
              .arg(facts.parameters)
              .arg(bytesText(facts.parameterBytes), bytesText(facts.bufferBytes));
        default: return op ? lineOf(cut_->tables(), op, nullptr, true, false).text : QString();
      }
    case Qt::DisplayRole: break;
    default: return {};
  }
  switch (index.column()) {
    case stage: return tr("Stage %1").arg(s);
    case ops: return QString::number(facts.ops);
    case time: return timeText(*cut_, facts.time());
    case parameters:
      return facts.parameters == 0
                 ? QStringLiteral("\u2013")
                 : tr("%1 · %2").arg(countText(facts.parameterElements), bytesText(facts.parameterBytes));
    case activations: return bytesText(facts.activationBytes);
    case saved: return bytesText(facts.savedBytes);
    default: return op ? operationName(cut_->tables(), op) : tr("no op");
  }
}

QVariant StagesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (section == time && orientation == Qt::Horizontal && cut_ && cut_->measured) {
    if (role == Qt::DisplayRole) return tr("Time, measured");
    if (role == Qt::ToolTipRole) return tr("Forward and backward, as a run took");
  }
  return TableModel::headerData(section, orientation, role);
}

// --- edges ---

StageEdgesModel::StageEdgesModel(QObject* parent) : TableModel(edgeColumns, parent) {}

void StageEdgesModel::setMicrobatches(int count) {
  if (count == microbatches_) return;
  microbatches_ = count;
  if (rowCount() > 0) Q_EMIT dataChanged(index(0, allBytes), index(rowCount() - 1, allBytes));
}

QVariant StageEdgesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& edge = cut_->split.edges[index.row()];
  const auto& described = cut_->edges[index.row()];
  const auto& tables = cut_->tables();
  const int skipped = edge.source < 0 ? 0 : edge.destination - edge.source - 1;
  const bool hasGradient = cut_->gradients[index.row()];
  switch (role) {
    case stageRole: return edge.destination;
    case swatchRole:
      if (index.column() == source && edge.source >= 0) return edge.source;
      return index.column() == destination ? QVariant(edge.destination) : QVariant();
    case valueRole: return edge.value.index;
    case sortRole:
      return index.column() == bytes || index.column() == allBytes ? QVariant(static_cast<double>(described.bytes))
                                                                   : QVariant();
    case opRole: {
      const auto maker = tables.value(edge.value).producer;
      return maker ? maker.index : cut_->firstOp(edge.destination).index;
    }
    case Qt::TextAlignmentRole: return alignmentOf(index.column());
    case Qt::ToolTipRole:
      return skipped > 0       ? skipped == 1 ? tr("Skips 1 stage") : tr("Skips %1 stages").arg(skipped)
                   : edge.source < 0 ? tr("An input of the model")
                               : tr("To the next stage");
    case Qt::DisplayRole: break;
    default: return {};
  }
  switch (index.column()) {
    case source: return edge.source < 0 ? tr("input") : QString::number(edge.source);
    case destination:
      return skipped > 0 ? tr("%1  \u21e5 skips %2").arg(edge.destination).arg(skipped)
                         : QString::number(edge.destination);
    case value: return toQt(described.name);
    case type: return tables.isTensor(edge.value) ? typeText(tables.meta(edge.value)) : tr("number");
    case bytes: return bytesText(described.bytes);
    case allBytes: return bytesText(described.bytes * microbatches_);
    default: return edge.source < 0 ? QString() : hasGradient ? tr("\u2190 sent back") : tr("none");
  }
}

// --- shared parameters ---

SharedParametersModel::SharedParametersModel(QObject* parent) : TableModel(sharedColumns, parent) {}

int SharedParametersModel::rowOf(const std::string& name) const {
  for (int row = 0; row < rowCount(); ++row)
    if (const auto& names = at(row).names; std::ranges::find(names, name) != names.end()) return row;
  return -1;
}

QVariant SharedParametersModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& shared = cut_->split.shared[index.row()];
  const bool sent = shared.use == MultiUse::transmit;
  if (role == stageRole) return shared.nameIn.empty() ? -1 : shared.nameIn.begin()->first;
  if (role == sortRole) return index.column() == bytes ? QVariant(static_cast<double>(shared.bytes)) : QVariant();
  if (role == Qt::TextAlignmentRole) return alignmentOf(index.column());
  if (role == opRole) {
    for (const auto& input : cut_->bench->model.computation.inputs)
      if (input.kind == InputKind::parameter && input.target == shared.names.front())
        for (auto op : cut_->ops()) {
          const auto operands = cut_->tables().operands(op);
          if (std::ranges::find(operands, input.value) != operands.end()) return op.index;
        }
    return BoundSymbolId().index;
  }
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  switch (index.column()) {
    case names: {
      QStringList all;
      for (const auto& name : shared.names) all << toQt(name);
      return all.join(QStringLiteral(" = "));
    }
    case stages: {
      QStringList all;
      for (const auto& [stage, name] : shared.nameIn)
        all << (shared.names.size() > 1 ? tr("%1 (%2)").arg(stage).arg(toQt(name)) : QString::number(stage));
      return all.join(QStringLiteral(", "));
    }
    case use:
      return sent ? tr("stage %1 sends it").arg(shared.nameIn.begin()->first)
                  : tr("a copy in each: sum their gradients");
    default: return bytesText(shared.bytes);
  }
}

}  // namespace retrograd::views
