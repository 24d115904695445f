#include "views/models/why_model.h"

#include <algorithm>

#include "views/text/format.h"
#include "views/text/line_text.h"

namespace retrograd::views {

/// Writes what is known of one value: a section with the answers below it.
class WhyModel::Filler {
 public:
  Filler(const OpenDocument& open, const WhyValue& answer, const NoteBook* notes, Node* root)
      : open_(open), document_(*open.analysis->document), answer_(answer), notes_(notes), root_(root) {}

  QString sentence() const {
    const auto& why = answer_.saved;
    const auto name = nameOf(why.value);
    if (answer_.backward.maker) return QStringLiteral("%1: %2").arg(name, backwardText());
    const auto first = why.readers.empty() ? std::nullopt : open_.program.positionOf(why.readers.front().op);
    if (!why.saved || !why.maker || why.storageBytes == 0 || !first || *first < why.from)
      return QStringLiteral("%1: %2").arg(name, savedText());
    const auto origin = why.readers.front().origin;
    const auto reader = origin ? tr("the backward of %1").arg(operationName(document_, origin)) : tr("the backward");
    return tr("%1 is saved, %2: read by %3, %4 later")
        .arg(name, bytesText(why.storageBytes), reader, opsText(*first - why.from));
  }

  void run() {
    answer_.backward.maker ? backwardSection() : savedSection();
    if (answer_.saved.saved && answer_.saved.maker && answer_.saved.storageBytes > 0) recomputeSection();
    if (answer_.asksGradient) gradientSection();
  }

 private:
  QString nameOf(ValueId value) const { return views::nameOf(document_, value, notes_); }

  Node* addOp(Node* parent, const QString& label, BoundSymbolId op) const {
    auto* node = parent->add(label, numberedCallOf(document_, op, notes_));
    node->op = op;
    node->tip = tr("Double click leads there");
    return node;
  }

  Node* addValue(Node* parent, const QString& label, ValueId value) const {
    auto* node = parent->add(label, nameOf(value));
    node->value = value;
    node->op = document_.value(value).producer;
    return node;
  }

  void addReaders(Node* section) {
    for (const auto& reader : answer_.saved.readers) {
      auto* node = addOp(section, reader.argument.empty() ? tr("read by") : tr("read as %1").arg(toQt(reader.argument)),
                         reader.op);
      if (reader.origin) addOp(node, tr("derivative of"), reader.origin);
    }
  }

  /// Of a value that the backward makes: nobody saves it, so what it is.
  void backwardSection() {
    const auto& what = answer_.backward;
    auto* section = section_ = root_->add(fullNameOf(document_, answer_.saved.value, notes_), backwardText());
    section->value = answer_.saved.value;
    section->op = what.maker;
    if (what.forward) addOp(section, tr("forward op"), what.forward);
    if (what.leadsTo) addValue(section, tr("for the gradient of"), what.leadsTo);
    addOp(section, tr("made by"), what.maker);
    for (const auto operand : document_.operands(what.maker))
      if (operand) addValue(section, tr("made from"), operand);
    addReaders(section);
    const auto& results = open_.analysis->joint.outputs;
    if (std::ranges::find(results, answer_.saved.value) != results.end())
      section->add(tr("read by"), tr("whoever asked for gradients: it is a result"));
    else if (answer_.saved.readers.empty()) section->add(tr("read by"), tr("no op"));
  }

  QString backwardText() const {
    const auto& what = answer_.backward;
    const auto role = document_.boundSymbol(what.maker).origin.role;
    const auto operation = what.operation ? operationName(document_, what.operation) : QString();
    if (role == Role::recompute) return tr("made by the forward too, computed again instead of saved");
    if (what.isGradient) return tr("the gradient of %1").arg(nameOf(what.leadsTo));
    if (what.leadsTo && operation.isEmpty()) return tr("on the way to the gradient of %1").arg(nameOf(what.leadsTo));
    if (what.leadsTo)
      return tr("in the derivative of %1, on the way to the gradient of %2").arg(operation, nameOf(what.leadsTo));
    return operation.isEmpty() ? tr("made in the backward") : tr("in the derivative of %1").arg(operation);
  }

  void savedSection() {
    const auto& why = answer_.saved;
    auto* section = section_ = root_->add(fullNameOf(document_, why.value, notes_), savedText());
    section->value = why.value;
    section->op = why.maker;
    if (answer_.computedAgain) addOp(section, tr("recomputed by"), answer_.recomputedBy);
    if (why.maker) addOp(section, tr("made by"), why.maker);
    addReaders(section);
    if (why.saved && why.maker) {
      section->add(tr("lives"), tr("from %1 to %2, over %3")
                                    .arg(placeText(open_, open_.program.opAt(why.from)),
                                         placeText(open_, open_.program.opAt(why.lastRead)),
                                         opsText(static_cast<std::size_t>(why.lastRead - why.from))));
      section->add(tr("bytes"),
                   why.storageBytes == why.bytes ? bytesText(why.bytes)
                   : why.storageBytes == 0
                       ? tr("%1, in memory that is there anyway").arg(bytesText(why.bytes))
                       : tr("%1, in a storage of %2").arg(bytesText(why.bytes), bytesText(why.storageBytes)));
    }
    for (auto other : why.sharing) addValue(section, tr("same storage"), other);
  }

  QString savedText() const {
    const auto& why = answer_.saved;
    if (why.saved && !why.maker) return tr("read in the backward; there anyway, costs nothing");
    if (why.saved && why.storageBytes == 0) return tr("saved as a view of an input or parameter, costs nothing");
    if (why.saved && why.storageBytes > 0 && open_.saved.costOf(why.value) == 0)
      return tr("saved in memory of %1 that counts for another value, see below").arg(bytesText(why.storageBytes));
    if (why.saved) return tr("saved for the backward: %1").arg(bytesText(why.storageBytes));
    if (answer_.computedAgain) return tr("not saved: recomputed in the backward");
    if (why.maker && !why.sharing.empty())
      return tr("not saved itself; its memory is kept as %1: %2")
          .arg(nameOf(why.sharing.front()), bytesText(why.storageBytes));
    if (why.maker) return tr("not saved: the backward does not read it");
    if (document_.value(why.value).kind == ValueKind::cotangent)
      return tr("the gradient that the backward begins with: it is given");
    return tr("not saved: it is always in memory");
  }

  void recomputeSection() {
    const auto& plan = answer_.saved.recompute;
    if (!plan.impossible.empty()) {
      section_->add(tr("instead"), tr("it cannot be recomputed: %1").arg(toQt(plan.impossible)));
      return;
    }
    auto* section = section_->add(tr("instead"), tr("recompute it: %1 again").arg(opsText(plan.ops.size())));
    section->add(tr("cost"), tr("some %1 moved").arg(bytesText(plan.cost)));
    if (plan.extraSaved > 0)
      section->add(tr("saved for it"), tr("%1 that are not saved now").arg(bytesText(plan.extraSaved)));
    if (const auto freed = plan.freed; answer_.saved.saved && plan.extraSaved > 0)
      section->add(tr("net"), plan.extraSaved >= freed ? tr("nothing gained")
                                                       : tr("%1 freed").arg(bytesText(freed - plan.extraSaved)));
    if (plan.draws) section->add(tr("random"), tr("a draw is replayed with the same numbers"));
    for (auto op : plan.ops) addOp(section, tr("runs again"), op);
    for (auto value : plan.from) addValue(section, tr("starts from"), value);
  }

  void gradientSection() {
    const auto& why = answer_.gradient;
    auto* section = section_->add(tr("gradient"), QString());
    if (why.gradient) {
      section->text = nameOf(why.gradient);
      section->value = why.gradient;
    } else {
      section->text = answer_.gradientOp ? tr("it has one") : noGradientText();
    }
    section->op = answer_.gradientOp;
    if (answer_.gradientOp) addOp(section, tr("made by"), answer_.gradientOp);
    for (const auto& stop : why.stops) {
      auto* node = section->add(toQt(name(stop.kind)), toQt(describe(document_, stop)));
      node->op = stop.op;
      if (stop.op) addOp(node, tr("stops at"), stop.op);
      for (auto op : stop.path)
        if (op != stop.op) addOp(node, tr("by way of"), op);
    }
  }

  QString noGradientText() const {
    const auto ways = static_cast<int>(answer_.gradient.stops.size());
    if (ways == 0) return tr("none is computed");
    return ways == 1 ? tr("none: the only way ends below") : tr("none: all %1 ways end below").arg(ways);
  }

  const OpenDocument& open_;
  const Document& document_;
  const WhyValue& answer_;
  const NoteBook* notes_;
  Node* root_;
  Node* section_ = nullptr;  ///< of the value; the others are below it
};

QString WhyModel::sentenceOf(const OpenDocument& document, const WhyValue& value, const NoteBook* notes) {
  return Filler(document, value, notes, nullptr).sentence();
}

void WhyModel::show(const std::shared_ptr<const OpenDocument>& document, const WhyReport& report,
                    const NoteBook* notes) {
  auto root = std::make_unique<Node>();
  if (document)
    for (const auto& value : report.values) Filler(*document, value, notes, root.get()).run();
  replace(std::move(root));
}

}  // namespace retrograd::views
