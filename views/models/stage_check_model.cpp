#include "views/models/stage_check_model.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/derivation/gradient_of.h"
#include "views/models/tree_model.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr std::array<TableColumn, StageCheckModel::columns> checkColumns{
    {{"Tensor", "Parameter, input or output"},
     {"What", "What of it is compared"},
     {"Verdict", "Results of the stages and of the whole model"},
     {"Difference", "Largest difference of an element", true},
     {"Relative", "That, over the largest element of the tensor in the whole model", true}}};

QString whatOf(const Claim& claim) {
  if (claim.kind == parameterGradient) return tr("parameter gradient");
  if (claim.kind == inputGradient) return tr("input gradient");
  return claim.kind == stageOutput ? tr("output") : tr("what is left in it");
}

QString verdictText(const Claim& claim) {
  if (!claim.good()) return tr("\u2717 %1").arg(toQt(textOf(*claim.measure)));
  return claim.measure->isExact() ? tr("\u2713 equal, bit for bit") : tr("\u2713 equal, within the tolerance");
}

double relativeOf(const Measure& measure) {
  if (measure.deviation == 0) return 0;
  return measure.scale > 0 ? measure.deviation / measure.scale : std::numeric_limits<double>::infinity();
}

}  // namespace

StageCheckModel::StageCheckModel(QObject* parent) : TableModel(checkColumns, parent) {}

void StageCheckModel::show(std::shared_ptr<const OpenDocument> document, Report report) {
  beginResetModel();
  document_ = std::move(document);
  claims_ = std::move(report.claims);
  targets_.clear();
  for (const auto& claim : claims_) targets_.push_back(target(claim));
  endResetModel();
}

ValueId StageCheckModel::target(const Claim& claim) const {
  const bool gradient = claim.kind == parameterGradient || claim.kind == inputGradient;
  return claim.value && gradient ? gradientOf(*document_->analysis, claim.value) : claim.value;
}

QVariant StageCheckModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& claim = claims_[index.row()];
  const auto target = targets_[index.row()];
  const auto figure = [](double number) {
    return number == 0          ? QStringLiteral("0")
           : std::isinf(number) ? QStringLiteral("\u2013")
                                : QString::number(number, 'e', 2);
  };
  switch (role) {
    case opRole:
      return target ? QVariant(static_cast<int>(document_->analysis->document->value(target).producer.index))
                    : QVariant();
    case valueRole: return target ? QVariant(static_cast<int>(target.index)) : QVariant();
    case sortRole:
      return index.column() < difference    ? QVariant()
             : index.column() == difference ? QVariant(claim.measure->deviation)
                                            : QVariant(relativeOf(*claim.measure));
    case Qt::TextAlignmentRole: return alignmentOf(index.column());
    case Qt::ToolTipRole:
      if (index.column() != verdict || claim.measure->isExact()) return {};
      return tr("The tensor's tolerance is %1.").arg(numberText(claim.measure->tolerance));
    case Qt::DisplayRole: break;
    default: return {};
  }
  switch (index.column()) {
    case name: return toQt(claim.subject);
    case what: return whatOf(claim);
    case verdict: return verdictText(claim);
    case difference: return figure(claim.measure->deviation);
    default: return figure(relativeOf(*claim.measure));
  }
}

QVariant StageCheckModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role == Qt::TextAlignmentRole && orientation == Qt::Horizontal && section >= 0 && section < columns)
    return alignmentOf(section);
  return TableModel::headerData(section, orientation, role);
}

}  // namespace retrograd::views
