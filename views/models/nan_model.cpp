#include "views/models/nan_model.h"

#include <map>

#include "core/split/op_cost.h"
#include "core/stepping/bad_places.h"
#include "core/trace/source.h"
#include "views/session/selection.h"
#include "views/text/elements.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

QString countsText(const TensorStatistics& statistics) {
  QStringList parts;
  if (statistics.nan) parts << tr("%1 NaN").arg(statistics.nan);
  if (statistics.inf) parts << tr("%1 Inf").arg(statistics.inf);
  return tr("%1 of %2").arg(parts.join(QStringLiteral(", "))).arg(statistics.elements);
}

class Filler {
 public:
  Filler(const Document& document, const NanWalk& walk, const NoteBook* notes, const QString& element,
         TreeModel::Node* root)
      : document_(document), walk_(walk), notes_(notes), element_(element), root_(root) {}

  void run() {
    rootSection();
    for (const auto& other : walk_.otherRoots) otherRoot(other);
    auto* way = root_->add(tr("Path"), tr("from %1 back to the root").arg(nameOf(walk_.path.front().value)));
    for (const auto& step : walk_.path) {
      const bool isRoot = &step == &walk_.path.back();
      auto* node = way->add((isRoot ? tr("\u25c6 root: %1") : QStringLiteral("%1")).arg(nameOf(step.value)),
                            countsText(step.statistics));
      node->value = step.value;
      node->op = step.op;
      node->text += QStringLiteral("   ") + (step.op ? numberedCallOf(document_, step.op, notes_) : tr("an input"));
      if (step.op == walk_.nanFrom && step.op) node->text += tr("   (NaN first here)");
    }
  }

 private:
  QString nameOf(ValueId value) const { return views::nameOf(document_, value, notes_); }

  TreeModel::Node* addOp(TreeModel::Node* parent, const QString& label, BoundSymbolId op) const {
    auto* node = parent->add(label, numberedCallOf(document_, op, notes_));
    node->op = op;
    return node;
  }

  void rootSection() {
    const auto& last = walk_.path.back();
    auto* section = root_->add(tr("\u25c6 Root"), QString());
    section->value = last.value;
    section->op = walk_.root;
    if (!walk_.root) {
      section->text = tr("the input %1 is not finite itself (%2)").arg(nameOf(last.value), countsText(last.statistics));
      return;
    }
    section->text = numberedCallOf(document_, walk_.root, notes_);
    const auto module = document_.text(document_.boundSymbol(walk_.root).module);
    if (!module.empty()) section->add(tr("module"), toQt(module));
    if (const auto line = pythonLine(document_, walk_.root); !line.empty()) section->add(tr("line"), toQt(line));
    if (!element_.isEmpty()) section->add(tr("element"), element_);
    if (!walk_.explanation.empty()) section->add(tr("because"), toQt(walk_.explanation));
    for (auto value : walk_.operands) {
      if (!value) continue;
      auto* node = section->add(tr("finite operand"), nameOf(value));
      node->value = value;
      node->op = document_.value(value).producer;
    }
    const bool inBackward = isBackwardRole(document_.boundSymbol(walk_.root).origin.role);
    if (walk_.forward && walk_.forward != walk_.root)
      addOp(section, inBackward ? tr("of the forward") : tr("operation"), walk_.forward);
    if (walk_.nanFrom && walk_.nanFrom != walk_.root) addOp(section, tr("NaN first at"), walk_.nanFrom);
  }

  void otherRoot(const NanRoot& other) {
    auto* section = root_->add(
        tr("\u25c6 Another root"),
        other.op ? numberedCallOf(document_, other.op, notes_)
                 : tr("the input %1 is not finite itself (%2)").arg(nameOf(other.value), countsText(other.statistics)));
    section->op = other.op;
    section->value = other.value;
    if (!other.explanation.empty()) section->add(tr("because"), toQt(other.explanation));
    if (other.forward && other.forward != other.op) addOp(section, tr("of the forward"), other.forward);
  }

  const Document& document_;
  const NanWalk& walk_;
  const NoteBook* notes_;
  const QString& element_;
  TreeModel::Node* root_;
};

/// Where the element of this index is in a tensor that is broadcast to it; nullopt where it is not.
std::optional<std::int64_t> offsetIn(const TensorMeta& meta, const std::vector<std::int64_t>& index) {
  if (meta.sizes.size() > index.size()) return {};
  auto at = meta.offset;
  const auto front = index.size() - meta.sizes.size();
  for (std::size_t d = 0; d < meta.sizes.size(); ++d) {
    if (meta.sizes[d] != 1 && index[front + d] >= meta.sizes[d]) return {};
    at += (meta.sizes[d] == 1 ? 0 : index[front + d]) * meta.strides[d];
  }
  return at;
}

/// "0 / 0" for an op that people write so, else "log(0)".
QString callText(const QString& op, const QStringList& operands) {
  static const std::map<QString, QString> signs{{QStringLiteral("div"), QStringLiteral(" / ")},
                                                {QStringLiteral("mul"), QStringLiteral(" * ")},
                                                {QStringLiteral("add"), QStringLiteral(" + ")},
                                                {QStringLiteral("sub"), QStringLiteral(" - ")},
                                                {QStringLiteral("pow"), QStringLiteral(" ** ")}};
  const auto sign = signs.find(op);
  return sign != signs.end() && operands.size() == 2
             ? operands.join(sign->second)
             : QStringLiteral("%1(%2)").arg(op, operands.join(QStringLiteral(", ")));
}

}  // namespace

void NanModel::show(const std::shared_ptr<const OpenDocument>& document, const NanWalk& walk, const NoteBook* notes,
                    const QString& element) {
  auto root = std::make_unique<Node>();
  if (document && !walk.path.empty()) Filler(*document->analysis->document, walk, notes, element, root.get()).run();
  replace(std::move(root));
}

QString rootText(const Document& document, const NanWalk& walk, const NoteBook* notes, const QString& element) {
  if (walk.path.empty()) return {};
  const auto& last = walk.path.back();
  if (!walk.root)
    return tr("The input %1 is not finite itself: %2")
        .arg(views::nameOf(document, last.value, notes), countsText(last.statistics));
  QStringList parts{element, toQt(walk.explanation), toQt(pythonLine(document, walk.root))};
  parts.removeAll(QString());
  const auto made = tr("#%1 %2 made it").arg(walk.root.index).arg(shortOpName(document, walk.root));
  return parts.isEmpty() ? made : QStringLiteral("%1: %2").arg(made, parts.join(QStringLiteral("; ")));
}

QString elementAtRoot(const QuestionContext& context, const NanWalk& walk, const Progress& progress) {
  if (!context.runner || !walk.root || walk.path.empty()) return {};
  const auto& document = *context.document.analysis->document;
  try {
    const auto moment = context.runner->at(walk.root, progress);
    const auto made = moment->contents(walk.path.back().value, Moment::Side::after);
    const auto places = badPlaces(made, 1);
    if (places.empty()) return {};
    QStringList index, operands;
    for (auto i : places.front().index) index << QString::number(i);
    auto where = tr("%1 at [%2]").arg(toQt(places.front().number), index.join(QStringLiteral(", ")));
    for (auto operand : document.operands(walk.root)) {
      if (!operand || !document.isTensor(operand)) continue;
      const auto contents = moment->contents(operand, Moment::Side::before);
      const auto at = contents.data ? offsetIn(contents.meta, places.front().index) : std::nullopt;
      if (!at) return where;
      operands << elementText(contents, *at);
    }
    auto op = shortOpName(document, walk.root).section(QLatin1Char('.'), 1, 1);
    const bool isPlain =
        !made.meta.sizes.empty() && !operands.isEmpty() && !isHeavy(familyOf(document.symbol(walk.root).name));
    return isPlain ? QStringLiteral("%1 = %2").arg(callText(op, operands), where) : where;
  } catch (const Error&) {
    return {};  // the walk is the answer; this is more of it where it can be had
  }
}

NanWalk walkNan(const QuestionContext& context, ValueId value, const Progress& progress) {
  const auto& analysis = *context.document.analysis;
  const auto record =
      context.engine.record(analysis, context.runner ? context.runner->fills() : std::map<ValueId, double>(), progress);
  return value ? walkToRoot(analysis, record, value) : walkToRoots(analysis, record);
}

}  // namespace retrograd::views
