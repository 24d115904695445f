#include "views/models/optimizer_model.h"

#include <set>

#include "core/formats/recording/recording.h"
#include "views/text/format.h"
#include "views/text/line_text.h"

namespace retrograd::views {
namespace {

using Node = TreeModel::Node;

/// What the document knows of parameters by the memory that they and what is kept of them lie in.
class OptimizerRows {
 public:
  OptimizerRows(const OpenDocument& open, const RunNumbers& numbers, const OptimizerModel::Updates& updates)
      : document_(*open.analysis->document),
        recording_(*open.analysis->file.recording),
        numbers_(numbers),
        updates_(updates) {
    for (const auto& name : recording_.names) names_.emplace(name.storage, &name);
    for (auto op : open.analysis->joint.ops)
      if (recording_.has(op) && recording_.op(op).phase == Phase::optimizer) add(op);
  }

  std::unique_ptr<Node> make() const {
    auto root = std::make_unique<Node>();
    std::set<std::string> shown;
    for (const auto& parameter : recording_.optimized)
      if (shown.insert(parameter).second) section(*root, parameter);
    for (const auto& [parameter, ops] : ops_)
      if (!parameter.empty() && shown.insert(parameter).second) section(*root, parameter);
    if (const auto others = ops_.find(std::string()); others != ops_.end())
      addOps(*root, tr("of no parameter"), others->second);
    return root;
  }

 private:
  const RecordedName* nameOfValue(ValueId value) const {
    if (!value) return nullptr;
    const auto known = names_.find(document_.value(value).storage);
    return known == names_.end() ? nullptr : known->second;
  }

  /// To each parameter that it writes, in one call for many too; one that writes none belongs to those it reads.
  void add(BoundSymbolId op) {
    std::set<std::string> parameters;
    for (const auto values : {document_.outputs(op), document_.operands(op)}) {
      for (auto value : values)
        if (const auto* name = nameOfValue(value)) {
          parameters.insert(name->name);
          if (name->role == "parameter" && !value_.contains(name->name)) value_[name->name] = value;
        }
      if (!parameters.empty()) break;
    }
    if (parameters.empty()) parameters.insert(std::string());
    for (const auto& parameter : parameters) ops_[parameter].push_back(op);
  }

  void row(Node& section, const QString& label, ValueId value) const {
    auto* node = section.add(label);
    const auto meta = document_.value(value).meta;
    QStringList words;
    if (meta) words << typeText(document_.meta(meta));
    if (const auto* s = numbers_.statistics(value)) {
      words << tr("norm %1").arg(numberText(s->norm));
      if (s->nan + s->inf > 0) words << tr("! %1 NaN or Inf").arg(s->nan + s->inf);
    }
    words << toQt(document_.displayName(value));
    node->text = words.join(QStringLiteral("  "));
    node->tip = label + QStringLiteral(": ") + node->text;
    node->value = value;
    node->op = document_.value(value).producer;
    node->oneLine = true;
  }

  void section(Node& root, const std::string& parameter) const {
    auto* node = root.add(toQt(parameter));
    if (const auto known = value_.find(parameter); known != value_.end()) row(*node, tr("value"), known->second);
    if (const auto known = recording_.gradients.find(parameter); known != recording_.gradients.end() && known->second)
      row(*node, tr("gradient"), known->second);
    if (const auto known = recording_.states.find(parameter); known != recording_.states.end())
      for (auto value : known->second)
        if (const auto* name = nameOfValue(value); name && !name->state.empty()) row(*node, toQt(name->state), value);
    QString update;
    if (const auto known = updates_.find(parameter); known != updates_.end()) {
      QStringList words;
      const auto& [clip, norm, ratio] = known->second;
      if (norm) words << tr("norm %1").arg(numberText(*norm));
      if (ratio) words << tr("%1 of the value").arg(numberText(*ratio));
      if (clip) words << tr("gradient clipped by %1").arg(numberText(*clip));
      update = words.join(QStringLiteral(", "));
    }
    const auto ops = ops_.find(parameter);
    if (!update.isEmpty()) node->add(tr("update"), update)->oneLine = true;
    node->text = !update.isEmpty() ? tr("update: %1").arg(update) : ops == ops_.end() ? tr("never updated") : QString();
    if (ops == ops_.end()) return;
    node->op = ops->second.front();
    addOps(*node, tr("ops"), ops->second);
  }

  void addOps(Node& above, const QString& label, const std::vector<BoundSymbolId>& ops) const {
    auto* all = above.add(label, opsText(ops.size()));
    for (auto op : ops) {
      const auto line = lineOf(document_, op, nullptr, true, false);
      auto* node = all->add(QStringLiteral("#%1").arg(op.index), line.text);
      node->tip = line.text;
      node->op = op;
      node->oneLine = true;
    }
  }

  const Document& document_;
  const StepRecording& recording_;
  const RunNumbers& numbers_;
  const OptimizerModel::Updates& updates_;
  std::map<StorageId, const RecordedName*> names_;
  std::map<std::string, std::vector<BoundSymbolId>> ops_;  ///< by parameter; "": of none
  std::map<std::string, ValueId> value_;
};

}  // namespace

QVariant OptimizerModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return section == 0 ? tr("Parameter") : tr("What the Optimizer Did");
}

void OptimizerModel::show(const std::shared_ptr<const OpenDocument>& document, const RunNumbers& numbers,
                          const Updates& updates) {
  const bool isStep = document && document->analysis->file.recording;
  replace(isStep ? OptimizerRows(*document, numbers, updates).make() : std::make_unique<Node>());
}

}  // namespace retrograd::views
