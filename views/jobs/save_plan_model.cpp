#include "views/jobs/save_plan_model.h"

#include <QFont>

#include "views/models/table_model.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

using Row = SavePlanRows::Row;

QString totalText(const PlanTotal& total) {
  auto text = tr("%1 bytes in %2 values").arg(total.bytes).arg(total.values);
  if (total.unknown > 0) text += tr(", and %1 of unknown size").arg(total.unknown);
  return text;
}

Row heading(const QString& text, std::optional<std::int64_t> size = {}) {
  Row row;
  row.cells[SavePlanRows::value] = text;
  row.isHeading = true;
  row.size = size;
  if (size) row.cells[SavePlanRows::bytes] = QString::number(*size);
  return row;
}

/// The ops of the model by the name of each of their results.
std::unordered_map<std::string, BoundSymbolId> opsByName(const Analysis& analysis) {
  std::unordered_map<std::string, BoundSymbolId> ops;
  const auto& document = *analysis.document;
  const auto& trace = analysis.derived() ? analysis.forward.ops : analysis.computation().trace.ops;
  for (const auto op : trace)
    for (const auto output : document.outputs(op)) ops.emplace(document.displayName(output), op);
  return ops;
}

}  // namespace

SavePlanRows::SavePlanRows(const SavePlan& plan, const Analysis& analysis) : ops_(opsByName(analysis)) {
  addSentences(plan);
  addTable(plan, plan.residuals, rows_.add(-1, heading(tr("Saved for the backward"), plan.saved.bytes)), false);
  addTable(
      plan, plan.residuals,
      rows_.add(-1, heading(tr("Parameters and inputs that the backward reads, in memory anyway"), plan.inputs.bytes)),
      true);
  addEveryTensor(plan);
  addPolicies(plan);
  ops_.clear();
}

BoundSymbolId SavePlanRows::opOf(const std::string& value) const {
  const auto found = ops_.find(value);
  return found == ops_.end() ? BoundSymbolId() : found->second;
}

void SavePlanRows::addSentences(const SavePlan& plan) {
  const auto findings = namedFindingsOf(plan);
  const int section =
      rows_.add(-1, heading(findings.empty() ? tr("No finding: equal layers save alike, and policies are followed")
                                             : tr("Findings: %1").arg(findings.size())));
  for (const auto& finding : findings) {
    Row row;
    row.cells[value] = toQt(finding.text);
    row.op = opOf(finding.value);
    rows_.add(section, std::move(row));
  }
  const auto notes = notesOf(plan);
  if (notes.empty()) return;
  const int known = rows_.add(-1, heading(tr("Differences with a known reason: %1").arg(notes.size())));
  for (const auto& note : notes) rows_.add(known, {.cells = {toQt(note)}});
}

Row SavePlanRows::rowOf(const SavePlan& plan, const PlanValue& described) const {
  Row row;
  row.cells[value] = toQt(nameText(plan, described));
  row.cells[type] = toQt(typeText(described));
  row.cells[bytes] = described.bytes ? QString::number(*described.bytes) : QStringLiteral("?");
  row.cells[op] = toQt(opText(described));
  row.cells[policy] = toQt(described.policy);
  row.cells[fate] = toQt(name(described.fate));
  if (described.line > 0) row.cells[line] = QStringLiteral("%1:%2").arg(toQt(described.file)).arg(described.line);
  if (!described.viewOf.empty()) row.cells[line] += tr("  view of %1").arg(toQt(described.viewOf));
  row.size = described.bytes;
  row.op = opOf(described.name);
  return row;
}

void SavePlanRows::addTable(const SavePlan& plan, const PlanTable& table, int section, bool ofInputs) {
  int group = section;
  std::vector<std::size_t> layers;
  for (const auto& folded : table.rows) {
    const auto& first = table.values[folded.values.front()];
    if (&table == &plan.residuals && first.isInput != ofInputs) continue;
    if (folded.layers != layers) {
      layers = folded.layers;
      group = layers.empty() ? section : rows_.add(section, heading(toQt(headingText(plan, layers))));
    }
    const int at = rows_.add(group, rowOf(plan, first));
    if (folded.values.size() < 2) continue;
    for (std::size_t i = 0; i < folded.values.size(); ++i) {
      auto row = rowOf(plan, table.values[folded.values[i]]);
      row.cells[value] += QStringLiteral("  ") + toQt(layersText(plan, {folded.layers[i]}));
      rows_.add(at, std::move(row));
    }
  }
}

void SavePlanRows::addEveryTensor(const SavePlan& plan) {
  addTable(plan, plan.computed,
           rows_.add(-1, heading(tr("Every tensor of the forward: %1").arg(plan.computed.values.size()))), false);
}

void SavePlanRows::addPolicies(const SavePlan& plan) {
  const int section = rows_.add(-1, heading(tr("Policies of checkpointing, and what happened")));
  for (const auto& count : plan.policies) {
    Row row;
    row.cells[value] = count.policy.empty() ? tr("no policy") : toQt(count.policy);
    row.cells[fate] =
        tr("saved %1, recomputed %2, not needed %3").arg(count.saved).arg(count.recomputed).arg(count.unused);
    rows_.add(section, std::move(row));
  }
}

void SavePlanModel::show(std::shared_ptr<const SavePlanRows> rows) {
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
}

const TreePlace& SavePlanModel::placeOf(int row) const {
  static const TreePlace nothing;
  return rows_ ? rows_->tree().placeOf(row) : nothing;
}

QVariant SavePlanModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& row = rows_->tree().all[rowOf(index)];
  switch (role) {
    case Qt::DisplayRole:
    case Qt::ToolTipRole: return row.cells[index.column()];
    case Qt::TextAlignmentRole:
      return index.column() == SavePlanRows::bytes ? QVariant(Qt::AlignRight | Qt::AlignVCenter)
                                                   : QVariant(Qt::AlignLeft | Qt::AlignVCenter);
    case Qt::FontRole: {
      if (!row.isHeading || row.parent >= 0) return {};
      QFont font;
      font.setBold(true);
      return font;
    }
    case opRole: return row.op.index;
    default: return {};
  }
}

QVariant SavePlanModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr auto columns =
      std::to_array<TableColumn>({{"Value"}, {"Type"}, {"Bytes"}, {"Op"}, {"Policy"}, {"In fact"}, {"Line of Python"}});
  return headerOf(columns, section, orientation, role);
}

QString totalsText(const SavePlan& plan) {
  auto text = tr("Saved: %1").arg(totalText(plan.saved));
  text += QStringLiteral("  \u00b7  ") + (plan.allSaved ? tr("all saved: %1").arg(totalText(*plan.allSaved))
                                                        : tr("all saved: the log has no joint graph"));
  for (std::size_t i = 0; i < plan.layers.size();) {
    std::vector<std::size_t> group;
    const auto& first = plan.layers[i];
    for (; i < plan.layers.size() && plan.layers[i].group == first.group; ++i) group.push_back(i);
    text +=
        QStringLiteral("  \u00b7  ") + tr("%1: equal, %2 ops each").arg(toQt(layersText(plan, group))).arg(first.ops);
  }
  return text;
}

}  // namespace retrograd::views
