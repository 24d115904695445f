#include "views/models/inspector_model.h"

#include <QFileInfo>
#include <map>

#include "core/questions/op_formula.h"
#include "core/trace/print/printer.h"
#include "views/session/selection.h"
#include "views/text/format.h"
#include "views/text/line_text.h"

namespace retrograd::views {

/// Writes the sections of one op, one function a section.
class InspectorModel::Filler {
 public:
  Filler(const OpenDocument& open, BoundSymbolId op, const NoteBook* notes, Node* root)
      : open_(open),
        document_(*open.analysis->document),
        op_(op),
        bound_(document_.boundSymbol(op)),
        notes_(notes),
        root_(root) {}

  void run() {
    opSection();
    formulaSection();
    valuesSection();
    originSection();
    ruleSection();
    savedSection();
    sourceSection();
  }

 private:
  QString nameOf(ValueId value) const { return views::nameOf(document_, value, notes_); }

  QString describe(ValueId value) const {
    const auto& entry = document_.value(value);
    auto text = fullNameOf(document_, value, notes_);
    if (entry.meta) text += QStringLiteral("  ") + typeText(document_.meta(entry.meta));
    if (entry.kind != ValueKind::activation && entry.kind != ValueKind::gradient)
      text += QStringLiteral("  ") + toQt(name(entry.kind));
    return text;
  }

  Node* addOp(Node* parent, const QString& label, BoundSymbolId op) const {
    auto* node = parent->add(label, numberedCallOf(document_, op, notes_));
    node->op = op;
    return node;
  }

  void opSection() {
    const auto& symbol = document_.symbol(bound_.symbol);
    auto* section = root_->add(tr("Op"), callOf(document_, op_, notes_));
    section->tip = toQt(printCall(document_, op_));
    section->op = op_;
    section->add(tr("number"), QStringLiteral("#%1").arg(op_.index))->tip =
        tr("Listings, Go to Place, breakpoints and the command line know the op as #%1").arg(op_.index);
    if (bound_.name) section->add(tr("name"), toQt(document_.text(bound_.name)));
    if (bound_.module) {
      auto* node = section->add(tr("module"), toQt(document_.text(bound_.module)));
      node->module = node->text;
      node->tip = tr("%1\nDouble click or Ctrl+Enter shows it in Modules").arg(node->text);
    }
    if (!symbol.schema.empty()) section->add(tr("schema"), toQt(symbol.schema))->tip = toQt(symbol.schema);
    if (const auto position = open_.program.positionOf(op_)) {
      const auto forward = open_.program.forwardSize();
      // Its place there is no second number of the op: it is in the tooltip.
      const bool isForward = *position < forward;
      section->add(tr("runs"), isForward ? tr("in the forward") : tr("in the backward"))->tip =
          isForward ? tr("Once it has run, the tool bar says forward %1/%2").arg(*position + 1).arg(forward)
                    : tr("Once it has run, the tool bar says backward %1/%2")
                          .arg(*position - forward + 1)
                          .arg(open_.program.size() - forward);
    }
    QStringList effects;
    if (bound_.effects & effect::writes) effects << tr("writes in place");
    if (bound_.effects & effect::random) effects << tr("draws random numbers");
    if (bound_.effects & effect::opaque) effects << tr("opaque");
    if (bound_.effects & effect::view) effects << tr("view");
    if (bound_.effects & effect::needsData) effects << tr("depends on data");
    if (!bound_.gradMode && bound_.origin.role == Role::none) effects << tr("without gradient");
    if (!effects.isEmpty()) section->add(tr("effects"), effects.join(QStringLiteral(", ")));
    for (const auto* symbol : sizeSymbolsOf(document_, op_)) section->add(tr("size"), toQt(printSizeSymbol(*symbol)));
  }

  void formulaSection() {
    const auto* formula = formulaOf(document_.symbol(bound_.symbol).name);
    if (!formula) return;
    auto* section = root_->add(tr("Formula"), toQt(formula->where));
    section->oneLine = false;  // every term counts
    const auto add = [section](const QString& label, std::string_view expression) {
      auto* node = section->add(label, toQt(expression));
      node->tip = node->text;
    };
    for (std::size_t i = 0; i < formula->results.size(); ++i)
      add(formula->results.size() == 1 ? tr("result") : tr("result %1").arg(i + 1), formula->results[i]);
    for (const auto name : formula->names) {
      const auto equals = name.find(" = ");
      add(toQt(name.substr(0, equals)), name.substr(equals + 3));
    }
  }

  void valuesSection() {
    Node* operands = nullptr;
    Node* outputs = nullptr;
    for (const auto& row : valueRows(document_, op_)) {
      auto*& section = row.output ? outputs : operands;
      if (!section) section = root_->add(row.output ? tr("Outputs") : tr("Operands"));
      auto* node = section->add(toQt(row.label), describe(row.value));
      node->value = row.value;
      node->op = document_.value(row.value).producer;
      node->tip =
          node->op
              ? tr("%1\nDouble click or Ctrl+Enter goes to #%2, which makes it").arg(node->text).arg(node->op.index)
              : QString();
    }
  }

  void originSection() {
    const auto& origin = bound_.origin;
    if (origin.role == Role::none) return derivedSection();
    auto* section = root_->add(tr("Origin"), origin.op      ? operationName(document_, origin.op)
                                             : origin.value ? nameOf(origin.value)
                                                            : tr("none"));
    section->op = origin.op;
    section->add(tr("role"), toQt(name(origin.role)));
    if (origin.op) addOp(section, tr("operation"), origin.op);
    const auto forward = open_.analysis->links.forwardOf(document_, op_);
    if (forward && isBackwardRole(origin.role)) addOp(section, tr("forward op"), forward);
    if (origin.op && origin.operand >= 0) section->add(tr("operand"), operandText(origin.op, origin.operand));
    if (origin.op && origin.output >= 0) {
      const auto outputs = document_.outputs(origin.op);
      const auto i = static_cast<std::size_t>(origin.output);
      section->add(tr("output"),
                   i < outputs.size() && outputs[i] ? nameOf(outputs[i]) : QString::number(origin.output));
    }
    if (origin.value) {
      auto* node =
          section->add(origin.role == Role::accumulation ? tr("sum for") : tr("gradient of"), describe(origin.value));
      node->value = origin.value;
      node->op = document_.value(origin.value).producer;
    }
    const auto terms = document_.terms(origin);
    for (std::size_t i = 0; i < terms.size(); ++i) {
      auto* node = section->add(tr("term %1").arg(i + 1), describe(terms[i]));
      node->value = terms[i];
      node->op = document_.value(terms[i]).producer;
    }
  }

  QString operandText(BoundSymbolId operation, int operand) const {
    const auto rows = valueRows(document_, operation);
    const auto* row = tensorOperand(rows, operand);
    return row ? QStringLiteral("%1: %2").arg(toQt(row->label), describe(row->value)) : QString::number(operand);
  }

  /// The operation's operand of this number, counting tensors only, as Origin::operand does.
  const ValueRow* tensorOperand(const std::vector<ValueRow>& rows, int operand) const {
    int seen = -1;
    for (const auto& row : rows)
      if (!row.output && document_.isTensor(row.value) && ++seen == operand) return &row;
    return nullptr;
  }

  void derivedSection() {
    const auto derived = open_.analysis->links.derived(op_);
    if (derived.empty()) return;
    auto* section = root_->add(tr("Forward ops"));
    for (auto op : derived)
      if (!isBackwardRole(document_.boundSymbol(op).origin.role))
        addOp(section, toQt(name(document_.boundSymbol(op).origin.role)), op);
  }

  /// The rule with its operands bound: every backward op that the operation leads to.
  void ruleSection() {
    const auto operation = OriginLinks::origin(document_, op_);
    if (!operation) return;
    Node* section = nullptr;
    const auto operands = valueRows(document_, operation);
    for (auto op : open_.analysis->links.derived(operation)) {
      const auto& origin = document_.boundSymbol(op).origin;
      if (!isBackwardRole(origin.role) || origin.role == Role::recompute) continue;
      if (!section) section = root_->add(tr("Rule"), tr("backward of %1").arg(shortOpName(document_, operation)));
      const auto* row = origin.operand >= 0 ? tensorOperand(operands, origin.operand) : nullptr;
      addOp(section, row ? toQt(row->label) : toQt(name(origin.role)), op);
    }
  }

  void savedSection() {
    Node* section = nullptr;
    std::int64_t bytes = 0;
    std::set<StorageId> counted;
    std::map<ValueId, std::vector<BoundSymbolId>> users;
    const auto isForward = !isBackwardRole(bound_.origin.role);
    const auto rows = valueRows(document_, op_);
    if (isForward)
      for (const auto& row : rows)
        if (row.output && open_.saved.contains(row.value)) users[row.value];
    if (!users.empty()) findBackwardUsers(users);
    for (const auto& row : rows) {
      if (!open_.saved.contains(row.value) || row.output != isForward) continue;
      if (!section) section = root_->add(isForward ? tr("Saved") : tr("Reads saved"));
      const auto& entry = document_.value(row.value);
      const auto* storage = entry.storage ? &document_.storage(entry.storage) : nullptr;
      // Parameters, inputs and views of them cost no memory: they are there without being saved. Nor does a second view
      // of the same memory.
      const bool external = storage && storage->external;
      const bool isFirst = storage && !external && counted.insert(entry.storage).second;
      const bool counts = isFirst && (!isForward || open_.saved.costOf(row.value) > 0);
      if (counts) bytes += storage->bytes;
      auto* node = section->add(nameOf(row.value), external             ? tr("there anyway: %1").arg(sourceOf(*storage))
                                                   : counts || !storage ? bytesText(storage ? storage->bytes : 0)
                                                                        : countedAt(entry.storage));
      node->value = row.value;
      node->op = entry.producer;
      if (!isForward) continue;
      for (auto user : users[row.value]) addOp(node, tr("for"), user);
    }
    if (section) section->text = isForward ? tr("%1 for the backward").arg(bytesText(bytes)) : bytesText(bytes);
  }

  /// Which value the bytes of this memory are counted for.
  QString countedAt(StorageId storage) const {
    for (auto value : document_.valueIds())
      if (open_.saved.costOf(value) > 0 && document_.value(value).storage == storage)
        return tr("in the memory of %1, which counts").arg(nameOf(value));
    return tr("memory counted above");
  }

  /// "parameter weight", "input x": whose memory it is.
  QString sourceOf(const Storage& storage) const {
    return storage.first
               ? QStringLiteral("%1 %2").arg(toQt(name(document_.value(storage.first).kind)), nameOf(storage.first))
               : tr("an input");
  }

  /// The first ops of the backward that read each of these values, in one walk for all of them, which ends where each
  /// has enough.
  void findBackwardUsers(std::map<ValueId, std::vector<BoundSymbolId>>& users) const {
    constexpr std::size_t most = 50;
    std::size_t open = users.size();
    for (auto op : open_.analysis->backward.ops) {
      for (auto operand : document_.operands(op)) {
        const auto found = users.find(operand);
        if (found == users.end() || found->second.size() == most ||
            (!found->second.empty() && found->second.back() == op))
          continue;
        found->second.push_back(op);
        if (found->second.size() == most && --open == 0) return;
      }
    }
  }

  void sourceSection() {
    auto id = bound_.source;
    if (!id && bound_.origin.op) id = document_.boundSymbol(bound_.origin.op).source;
    const auto& stack = document_.source(id);
    if (stack.empty()) return;
    const auto& inner = stack.back();
    const auto place = [](const SourceFrame& frame) {
      return QStringLiteral("%1:%2").arg(QFileInfo(toQt(frame.file)).fileName()).arg(frame.line);
    };
    auto* section = root_->add(tr("Source"), place(inner));
    for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) {
      auto* node = section->add(place(*frame), toQt(frame->code.empty() ? frame->function : frame->code));
      node->tip = QStringLiteral("%1:%2, %3\n%4")
                      .arg(toQt(frame->file))
                      .arg(frame->line)
                      .arg(toQt(frame->function), toQt(frame->code));
      node->frame = static_cast<int>(frame - stack.rbegin());
    }
  }

  const OpenDocument& open_;
  const Document& document_;
  BoundSymbolId op_;
  const BoundSymbol& bound_;
  const NoteBook* notes_;
  Node* root_;
};

void InspectorModel::show(std::shared_ptr<const OpenDocument> document, BoundSymbolId op, const NoteBook* notes) {
  auto root = std::make_unique<Node>();
  root->oneLine = true;
  if (document && op) Filler(*document, op, notes, root.get()).run();
  replace(std::move(root));
}

}  // namespace retrograd::views
