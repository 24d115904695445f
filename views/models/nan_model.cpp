#include "views/models/nan_model.h"

#include "views/session/selection.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

QString countsText(const TensorStatistics& statistics) {
  QStringList parts;
  if (statistics.nan) parts << QObject::tr("%1 NaN").arg(statistics.nan);
  if (statistics.inf) parts << QObject::tr("%1 Inf").arg(statistics.inf);
  return QObject::tr("%1 of %2").arg(parts.join(QStringLiteral(", "))).arg(statistics.elements);
}

class Filler {
 public:
  Filler(const Document& document, const NanWalk& walk, const NoteBook* notes, TreeModel::Node* root)
      : document_(document), walk_(walk), notes_(notes), root_(root) {}

  void run() {
    rootSection();
    for (const auto& other : walk_.otherRoots) otherRoot(other);
    auto* way =
        root_->add(QObject::tr("Way"), QObject::tr("from %1 back to the root").arg(nameOf(walk_.path.front().value)));
    for (const auto& step : walk_.path) {
      const bool isRoot = &step == &walk_.path.back();
      auto* node = way->add((isRoot ? QObject::tr("\u25c6 root: %1") : QStringLiteral("%1")).arg(nameOf(step.value)),
                            countsText(step.statistics));
      node->value = step.value;
      node->op = step.op;
      node->text +=
          QStringLiteral("   ") + (step.op ? numberedCallOf(document_, step.op, notes_) : QObject::tr("comes in so"));
      if (step.op == walk_.nanFrom && step.op) node->text += QObject::tr("   (NaN first here)");
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
    auto* section = root_->add(QObject::tr("\u25c6 Root"), QString());
    section->value = last.value;
    section->op = walk_.root;
    if (!walk_.root) {
      section->text =
          QObject::tr("%1 itself is bad: it comes in so (%2)").arg(nameOf(last.value), countsText(last.statistics));
      return;
    }
    section->text = numberedCallOf(document_, walk_.root, notes_);
    const auto module = document_.text(document_.boundSymbol(walk_.root).module);
    if (!module.empty()) section->add(QObject::tr("module"), toQt(module));
    if (!walk_.explanation.empty()) section->add(QObject::tr("because"), QString::fromStdString(walk_.explanation));
    for (auto value : walk_.operands) {
      if (!value) continue;
      auto* node = section->add(QObject::tr("finite operand"), nameOf(value));
      node->value = value;
      node->op = document_.value(value).producer;
    }
    const bool inBackward = isBackwardRole(document_.boundSymbol(walk_.root).origin.role);
    if (walk_.forward && walk_.forward != walk_.root)
      addOp(section, inBackward ? QObject::tr("of the forward") : QObject::tr("operation"), walk_.forward);
    if (walk_.nanFrom && walk_.nanFrom != walk_.root) addOp(section, QObject::tr("NaN first at"), walk_.nanFrom);
  }

  void otherRoot(const NanRoot& other) {
    auto* section = root_->add(
        QObject::tr("\u25c6 Another root"),
        other.op ? numberedCallOf(document_, other.op, notes_)
                 : QObject::tr("%1 comes in so (%2)").arg(nameOf(other.value), countsText(other.statistics)));
    section->op = other.op;
    section->value = other.value;
    if (!other.explanation.empty()) section->add(QObject::tr("because"), QString::fromStdString(other.explanation));
    if (other.forward && other.forward != other.op) addOp(section, QObject::tr("of the forward"), other.forward);
  }

  const Document& document_;
  const NanWalk& walk_;
  const NoteBook* notes_;
  TreeModel::Node* root_;
};

}  // namespace

void NanModel::show(const std::shared_ptr<const OpenDocument>& document, const NanWalk& walk, const NoteBook* notes) {
  auto root = std::make_unique<Node>();
  if (document && !walk.path.empty()) Filler(*document->analysis->document, walk, notes, root.get()).run();
  replace(std::move(root));
}

NanWalk walkNan(const QuestionContext& context, ValueId value, const Progress& progress) {
  const auto& analysis = *context.document.analysis;
  const auto record =
      context.engine.record(analysis, context.runner ? context.runner->fills() : std::map<ValueId, double>(), progress);
  return value ? walkToRoot(analysis, record, value) : walkToRoots(analysis, record);
}

}  // namespace retrograd::views
