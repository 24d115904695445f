#include "views/models/checks_model.h"

#include <cmath>

#include "views/text/format.h"
#include "views/text/line_text.h"

namespace retrograd::views {
namespace {

QString againstText(const GradientCheckRow& row, double difference, double tolerance) {
  if (row.verdict == GradientCheckRow::Verdict::atKink || row.verdict == GradientCheckRow::Verdict::unknown)
    return tr("neither right nor wrong");
  const auto mark = difference <= tolerance ? QStringLiteral("\u2713") : QStringLiteral("\u2717");
  return QStringLiteral("%1 %2").arg(mark, numberText(difference));
}

}  // namespace

QString rangeText(const Document& document, const std::vector<BoundSymbolId>& ops) {
  const auto nameOf = [&](BoundSymbolId op) {
    const auto name = toQt(document.text(document.boundSymbol(op).name));
    return name.isEmpty() ? shortOpName(document, op) : name;
  };
  if (ops.empty()) return {};
  if (ops.size() == 1) return nameOf(ops.front());
  return tr("%1 to %2 (%3 ops)").arg(nameOf(ops.front()), nameOf(ops.back())).arg(ops.size());
}

void ChecksModel::show(const OpenDocument& open, const std::vector<BoundSymbolId>& ops, const GradientCheck& check) {
  const auto& document = *open.analysis->document;
  auto root = std::make_unique<Node>();
  auto* range = root->add(tr("Range"), rangeText(document, ops));
  range->op = ops.empty() ? BoundSymbolId() : ops.front();
  for (const auto& lost : check.lostBackwards)
    root->add(tr("\u26a0 backward not in the file"), toQt(lost))->tip =
        tr("PyTorch runs a backward of its own here, which the file does not hold. Compare with PyTorch's gradients: "
           "retrograd check --reference");
  for (const auto& row : check.rows) {
    auto* node = root->add(tr("gradient of %1").arg(toQt(row.input)), toQt(row.note));
    node->add(tr("finite differences"), againstText(row, row.finiteDifferences, GradientCheck::finiteTolerance))->tip =
        tr("Relative difference of the derivative along random directions, the worst of %1; in double precision")
            .arg(check.directions);
    node->add(tr("LibTorch's autograd"), againstText(row, row.libTorch, GradientCheck::libTorchTolerance))->tip =
        tr("Relative difference to the gradient that LibTorch's own autograd gives; in double precision");
  }
  replace(std::move(root));
}

void ChecksModel::show(const OpenDocument& open, const GradientTerms& terms, const NoteBook* notes) {
  const auto& document = *open.analysis->document;
  const auto nameOf = [&](ValueId value) { return views::nameOf(document, value, notes); };
  auto root = std::make_unique<Node>();
  auto* sum = root->add(tr("gradient of %1").arg(nameOf(terms.value)),
                        tr("%1, norm %2").arg(nameOf(terms.gradient), numberText(terms.norm)));
  sum->value = terms.gradient;
  sum->op = document.value(terms.gradient).producer;
  for (const auto& term : terms.terms) {
    const auto share = terms.norm > 0 && std::isfinite(term.norm)
                           ? tr("  (%1 % of the sum's)").arg(100 * term.norm / terms.norm, 0, 'g', 3)
                           : QString();
    auto* node = sum->add(tr("+ %1").arg(nameOf(term.gradient)), tr("norm %1").arg(numberText(term.norm)) + share);
    node->value = term.gradient;
    node->op = term.op;
    auto* from = node->add(tr("from"), term.origin ? numberedCallOf(document, term.origin, notes) : tr("outside"));
    from->op = term.origin;
    if (term.op) node->add(tr("made by"), numberedCallOf(document, term.op, notes))->op = term.op;
  }
  replace(std::move(root));
}

}  // namespace retrograd::views
