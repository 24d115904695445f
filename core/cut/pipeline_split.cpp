#include "core/cut/pipeline_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/base/enum_array.h"
#include "core/base/error.h"
#include "core/base/id_vector.h"
#include "core/base/overlap.h"
#include "core/trace/effects.h"
#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

constexpr int root = -1;  ///< the model's caller: where inputs come from and results go

std::string nameOf(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  if (bound.name) return std::string(document.text(bound.name));
  const auto outputs = document.outputs(op);
  return !outputs.empty() && outputs[0] ? document.displayName(outputs[0]) : std::string();
}

bool isUser(const OutputSpec& output) {
  return output.kind == OutputKind::user || output.kind == OutputKind::loss || output.kind == OutputKind::gradient;
}
/// Name of a parameter as an op knows it: of a tied one that under the op's module, else the first.
std::string nameUnder(std::string_view module, const InputSpec& input) {
  const auto isUnder = [&](const std::string& name) {
    return !module.empty() && name.starts_with(module) && name.find('.', module.size()) == module.size();
  };
  for (const auto& alias : input.aliases)
    if (!isUnder(input.target) && isUnder(alias)) return alias;
  return input.target;
}

/// Kept from one run to the next.
bool isState(const InputSpec& input) { return input.kind == InputKind::buffer || input.kind == InputKind::parameter; }

class Splitter {
 public:
  Splitter(const Document& document, const Computation& computation, const PipelineOptions& options)
      : document_(document), computation_(computation), options_(options) {
    for (std::size_t i = 0; i < computation.inputs.size(); ++i)
      if (computation.trace.inputs[i]) inputOf_.try_emplace(computation.trace.inputs[i], i);
  }

  PipelineSplit run(const Cuts& cuts) {
    makeSegments(cuts);
    dropDead();
    numberValues();
    findWriters();
    for (int s = 0; s < stageCount(); ++s)
      for (auto op : stage(s).ops) {
        for (auto value : document_.operands(op))
          if (value) use(value, s, op);
        write(s, op);
      }
    takeResults();
    connect();
    describeShared();
    return std::move(split_);
  }

 private:
  int stageCount() const { return static_cast<int>(split_.stages.size()); }
  PipelineStage& stage(int s) { return split_.stages[s]; }
  StorageId storageOf(ValueId value) const { return document_.value(value).storage; }
  const InputSpec* inputSpec(ValueId value) const {
    const auto it = inputOf_.find(value);
    return it == inputOf_.end() ? nullptr : &computation_.inputs[it->second];
  }

  // --- stages ---

  void makeSegments(const Cuts& cuts) {
    const auto& ops = computation_.trace.ops;
    auto next = cuts.begin();
    bool begins = true;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      for (; next != cuts.end() && *next <= i; ++next) begins = true;
      if (isStageMarker(document_, ops[i])) continue;
      if (begins) {
        split_.stages.emplace_back();
        split_.stages.back().begin = i;
        begins = false;
      }
      split_.stages.back().ops.push_back(ops[i]);
    }
    if (split_.stages.empty()) split_.stages.emplace_back();  // a model that computes nothing is one stage
  }

  void numberValues() {
    definedIn_.assign(document_.valueCount(), root);
    for (int s = 0; s < stageCount(); ++s)
      for (auto op : stage(s).ops)
        for (auto output : document_.outputs(op))
          if (output) definedIn_[output] = s;
  }
  int definedIn(ValueId value) const { return definedIn_[value]; }

  /// Stages none of whose values anyone needs, and that do nothing else (the numbers stay dense).
  void dropDead() {
    numberValues();
    const auto shared = storagesAcross();
    std::unordered_set<ValueId> needed;
    for (const auto& output : computation_.outputs)
      if (output.value) needed.insert(output.value);
    std::vector<PipelineStage> live;
    for (int s = stageCount() - 1; s >= 0; --s) {
      const auto& ops = stage(s).ops;
      const auto isNeeded = [&](BoundSymbolId op) {
        const auto outputs = document_.outputs(op);
        return hasEffect(op, shared) ||
               std::any_of(outputs.begin(), outputs.end(), [&](ValueId id) { return id && needed.contains(id); });
      };
      if (stageCount() > 1 && std::none_of(ops.begin(), ops.end(), isNeeded)) {
        split_.notes.push_back(fmt::format("{} op{} from {} on are left out: no stage needs their results", ops.size(),
                                           ops.size() == 1 ? "" : "s", nameOf(document_, ops.front())));
        continue;
      }
      for (auto op : ops)
        for (auto operand : document_.operands(op))
          if (operand) needed.insert(operand);
      live.push_back(std::move(stage(s)));
    }
    if (live.empty()) live.emplace_back();
    std::reverse(live.begin(), live.end());
    std::reverse(split_.notes.begin(), split_.notes.end());
    split_.stages = std::move(live);
  }

  /// Storages that two stages touch, or the model's caller knows.
  std::unordered_set<StorageId> storagesAcross() {
    std::unordered_map<StorageId, int> seen;
    std::unordered_set<StorageId> across;
    const auto touch = [&](ValueId value, int s) {
      const auto storage = value ? storageOf(value) : StorageId();
      if (storage && seen.try_emplace(storage, s).first->second != s) across.insert(storage);
    };
    for (auto value : computation_.trace.inputs) touch(value, root);
    for (int s = 0; s < stageCount(); ++s)
      for (auto op : stage(s).ops) {
        for (auto value : document_.operands(op)) touch(value, s);
        for (auto value : document_.outputs(op)) touch(value, s);
      }
    for (const auto& output : computation_.outputs) touch(output.value, root);
    return across;
  }

  bool hasEffect(BoundSymbolId op, const std::unordered_set<StorageId>& shared) const {
    if (document_.boundSymbol(op).effects & (effect::random | effect::opaque)) return true;
    const auto written = writtenOperands(document_, op);
    return std::any_of(written.begin(), written.end(), [&](ValueId id) { return shared.contains(storageOf(id)); });
  }

  // --- writes in place ---

  /// Which stage writes each input of the model, and which makes the new content of a buffer that the graph returns.
  void findWriters() {
    for (int s = 0; s < stageCount(); ++s)
      for (auto op : stage(s).ops)
        for (auto value : writtenOperands(document_, op))
          for (std::size_t i = 0; i < computation_.inputs.size(); ++i)
            if (const auto input = computation_.trace.inputs[i];
                input && storageOf(value) && storageOf(input) == storageOf(value))
              own(i, s, op);
    for (const auto& output : computation_.outputs) {
      if (isUser(output) || output.kind == OutputKind::token || !output.value || definedIn(output.value) == root)
        continue;
      for (std::size_t i = 0; i < computation_.inputs.size(); ++i)
        if (const auto& input = computation_.inputs[i]; output.kind == OutputKind::inputMutation
                                                            ? input.name == output.target
                                                            : isState(input) && input.target == output.target)
          own(i, definedIn(output.value), document_.value(output.value).producer);
    }
  }

  void own(std::size_t input, int s, BoundSymbolId op) {
    const auto [it, isNew] = split_.mutationOwner.try_emplace(input, s);
    if (!isNew && it->second != s)
      refuse(op, s,
             fmt::format("it writes to {}, which stage {} writes to as well; only one stage can own it",
                         describe(computation_.inputs[input]), it->second));
  }

  static std::string describe(const InputSpec& input) {
    static constexpr EnumArray<InputKind, const char*, 6> kinds{"input",    "parameter", "buffer",
                                                                "constant", "token",     "object"};
    return fmt::format("{} {}", kinds[input.kind], input.target.empty() ? input.name : input.target);
  }

  [[noreturn]] void refuse(BoundSymbolId op, int s, const std::string& why) const {
    badUse(why + "; move the cut so that both fall into one stage",
           fmt::format("#{} ({}) in stage {}", nameOf(document_, op), document_.opName(op), s));
  }

  void write(int s, BoundSymbolId op) {
    for (auto value : writtenOperands(document_, op)) {
      const auto storage = storageOf(value);
      if (!storage) continue;
      const auto& received = received_[{s, storage}];
      if (received.size() > 1)
        refuse(op, s,
               fmt::format("it writes in place to memory that {} and {} share, which come from other stages as values "
                           "of their own",
                           document_.displayName(received[0]), document_.displayName(received[1])));
      if (!received.empty()) {
        const auto* input = inputSpec(received[0]);
        const bool external = document_.storage(storage).external;
        if (external && !input)
          refuse(op, s,
                 fmt::format("it writes through {}, which stage {} makes, to an input or buffer of the model",
                             document_.displayName(received[0]), definedIn(received[0])));
        if (!external && overlapsItself(document_.meta(received[0])))
          refuse(op, s,
                 fmt::format("it writes in place to memory of {}, several elements of which share a place; it comes "
                             "from another stage, and a copy has a place for "
                             "each",
                             document_.displayName(received[0])));
        auto& cloned = stage(s).cloned;
        if (!external && std::find(cloned.begin(), cloned.end(), received[0]) == cloned.end())
          cloned.push_back(received[0]);
      }
      lastWriter_[storage] = {s, op};
      if (changesGeometry(op, value)) reshapedIn_[{storage, document_.value(value).meta}] = s;
    }
  }

  /// transpose_, unsqueeze_ and their kin: the tensor has other sizes or strides from now on, and the document knows it
  /// by those it had.
  bool changesGeometry(BoundSymbolId op, ValueId written) const {
    if (isHigherOrder(op)) return bodiesChangeGeometry(op, document_.value(written).meta);
    const auto outputs = document_.outputs(op);
    if (outputs.size() != 1 || !outputs[0] || storageOf(outputs[0]) != storageOf(written)) return false;
    const auto& before = document_.meta(written);
    const auto& after = document_.meta(outputs[0]);
    return before.sizes != after.sizes || before.strides != after.strides;
  }

  bool isHigherOrder(BoundSymbolId op) const { return document_.symbol(op).isHigherOrder; }

  /// Whether a body of the op may change a tensor that looks like this and may be one of its inputs. Nothing
  /// is known of how values within a body look.
  bool bodiesChangeGeometry(BoundSymbolId op, MetaId like) const {
    const auto& arguments = document_.pattern(document_.boundSymbol(op).pattern).arguments;
    return std::any_of(arguments.begin(), arguments.end(),
                       [&](const Argument& argument) { return bodyChangesGeometry(argument, like); });
  }

  bool bodyChangesGeometry(const Argument& argument, MetaId like) const {
    if (argument.kind != Argument::Kind::subgraph)
      return std::any_of(argument.items.begin(), argument.items.end(),
                         [&](const Argument& item) { return bodyChangesGeometry(item, like); });
    const auto& body = document_.subgraph(SubgraphId(argument.integer));
    return std::any_of(body.ops.begin(), body.ops.end(), [&](BoundSymbolId op) {
      if (isHigherOrder(op)) return bodiesChangeGeometry(op, like);
      const auto& name = document_.symbol(op).name;
      if (!hasTrait(name, OpTrait::changesGeometry) || hasTrait(name, OpTrait::detach)) return false;
      const auto written = document_.value(document_.operands(op)[0]).meta;
      return !written || written == like;
    });
  }

  // --- what crosses ---

  void use(ValueId value, int s, BoundSymbolId op) {
    const auto reshaped = reshapedIn_.find({storageOf(value), document_.value(value).meta});
    if (reshaped != reshapedIn_.end() && reshaped->second != s)
      refuse(op, s,
             fmt::format("it reads {}, whose sizes or strides stage {} changes in place", document_.displayName(value),
                         reshaped->second));
    if (const auto* input = inputSpec(value)) return useInput(value, *input, s, op);
    const int from = definedIn(value);
    if (from == root || from == s) return;
    receive(value, writerOf(value, from, s, op), s);
  }

  void useInput(ValueId value, const InputSpec& input, int s, BoundSymbolId op) {
    const auto index = inputOf_.at(value);
    const auto owner = split_.mutationOwner.find(index);
    const bool owned = owner != split_.mutationOwner.end();
    if (owned && isState(input) && s < owner->second)
      refuse(op, s,
             fmt::format("it reads {}, which stage {} writes to: the next run would have to send the new content back",
                         describe(input), owner->second));
    if (owned && s > owner->second) {
      hold(index, owner->second);
      return receive(value, owner->second, s);
    }
    if (input.kind == InputKind::user) return receive(value, root, s);
    if (input.kind == InputKind::parameter) {
      const auto [first, isNew] = firstUse_.try_emplace(storageOf(value), s, value);
      if (first->second.first != s && useOf(input) == MultiUse::transmit) {
        sentAs_[{s, value}] = first->second.second;
        return receive(value, first->second.first, s);
      }
      users_[storageOf(value)].try_emplace(s, index);
    }
    hold(index, s);
  }

  MultiUse useOf(const InputSpec& input) const {
    auto names = input.aliases;
    names.push_back(input.target);
    for (const auto& name : names)
      if (const auto it = options_.multiUseOf.find(name); it != options_.multiUseOf.end()) return it->second;
    return options_.multiUse;
  }

  void hold(std::size_t input, int s) {
    auto& held = stage(s).held;
    if (computation_.inputs[input].kind == InputKind::user) return receive(computation_.trace.inputs[input], root, s);
    if (const auto place = std::lower_bound(held.begin(), held.end(), input); place == held.end() || *place != input)
      held.insert(place, input);
  }

  void receive(ValueId value, int source, int s) {
    auto& inputs = stage(s).inputs;
    if (std::any_of(inputs.begin(), inputs.end(), [&](const StageInput& i) { return i.value == value; })) return;
    inputs.push_back({value, source, 0});
    if (const auto storage = storageOf(value)) received_[{s, storage}].push_back(value);
  }

  /// The stage that has the value as it is when `s` reads it: the one that defined it, or a later one that wrote to it.
  int writerOf(ValueId value, int from, int s, BoundSymbolId op) const {
    const auto storage = storageOf(value);
    const auto last = storage ? lastWriter_.find(storage) : lastWriter_.end();
    if (last == lastWriter_.end() || last->second.first <= from) return from;
    const auto [writer, write] = last->second;
    const auto has = received_.find({writer, storage});
    const bool hasIt =
        has != received_.end() && std::find(has->second.begin(), has->second.end(), value) != has->second.end();
    if (hasIt) return writer == s ? from : writer;
    badUse(fmt::format("it writes in place to memory of {}, which stage {} makes and {} reads afterwards; the "
                       "write would not reach it. Move the cut so "
                       "that they fall into one stage",
                       document_.displayName(value), from,
                       s == root ? std::string("the model's caller")
                                 : fmt::format("#{} in stage {}", nameOf(document_, op), s)),
           fmt::format("#{} ({}) in stage {}", nameOf(document_, write), document_.opName(write), writer));
  }

  void takeResults() {
    for (std::size_t i = 0; i < computation_.outputs.size(); ++i) {
      const auto& output = computation_.outputs[i];
      if (!output.value) continue;
      int s = definedIn(output.value);
      if (const auto* input = inputSpec(output.value)) {
        const auto owner = split_.mutationOwner.find(inputOf_.at(output.value));
        if (owner == split_.mutationOwner.end() || !isUser(output)) continue;  // given back by the caller itself
        s = owner->second;
        (void)input;
      } else if (isUser(output) && s != root) {
        s = writerOf(output.value, s, root, {});
      }
      if (s == root) continue;
      if (isUser(output)) resultsOf_[s].emplace_back(output.value, i);
      else stage(s).mutations.push_back(i);
    }
  }

  /// Outputs of each stage in the order in which they are first needed, and the edges.
  void connect() {
    for (int s = 0; s < stageCount(); ++s)
      for (auto& input : stage(s).inputs) {
        auto sent = input.value;
        if (const auto it = sentAs_.find({s, input.value}); it != sentAs_.end()) sent = it->second;
        if (input.source != root) {
          input.output = outputOf(input.source, sent);
          stage(input.source).outputs[input.output].destinations.push_back(s);
        }
        split_.edges.push_back({input.source, input.output, s, sent});
      }
    for (const auto& [s, results] : resultsOf_)
      for (const auto& [value, result] : results) {
        const auto output = outputOf(s, value);
        stage(s).outputs[output].results.push_back(result);
      }
  }

  std::size_t outputOf(int s, ValueId value) {
    auto& outputs = stage(s).outputs;
    const auto it =
        std::find_if(outputs.begin(), outputs.end(), [&](const StageOutput& o) { return o.value == value; });
    const std::size_t position = it - outputs.begin();
    if (it == outputs.end()) outputs.push_back({value, {}, {}});
    return position;
  }

  // --- parameters ---

  void describeShared() {
    std::unordered_set<StorageId> done;
    std::vector<std::map<std::size_t, std::string>> namesIn;
    for (const auto& stage : split_.stages) namesIn.push_back(parameterNames(document_, computation_, stage));
    for (const auto& input : computation_.inputs) {
      if (input.kind != InputKind::parameter || !input.value) continue;
      const auto storage = storageOf(input.value);
      if (!done.insert(storage).second) continue;
      SharedParameter shared;
      shared.use = useOf(input);
      shared.bytes = document_.meta(input.value).bytes();
      addName(shared.names, input.target);
      for (const auto& other : computation_.inputs)
        if (other.kind == InputKind::parameter && other.value && storageOf(other.value) == storage)
          addName(shared.names, other.target);
      for (const auto& alias : input.aliases) addName(shared.names, alias);
      if (const auto users = users_.find(storage); users != users_.end())
        for (const auto& [s, index] : users->second) shared.nameIn[s] = namesIn[s].at(index);
      for (int s = 0; s < stageCount(); ++s)
        for (const auto& received : stage(s).inputs)
          if (storageOf(received.value) == storage) shared.nameIn.try_emplace(s, shared.names.front());
      if (shared.nameIn.empty()) split_.unused.push_back(input.target);
      if (shared.nameIn.size() > 1) split_.shared.push_back(std::move(shared));
    }
  }

  static void addName(std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }

  const Document& document_;
  const Computation& computation_;
  const PipelineOptions& options_;
  PipelineSplit split_;
  std::unordered_map<ValueId, std::size_t> inputOf_;
  IdVector<ValueId, int> definedIn_;
  std::map<std::pair<int, StorageId>, std::vector<ValueId>> received_;
  std::unordered_map<StorageId, std::pair<int, BoundSymbolId>> lastWriter_;
  /// By the memory of a tensor and what it looked like before: a tensor has several names, of which each op in place
  /// adds one.
  std::map<std::pair<StorageId, MetaId>, int> reshapedIn_;
  std::unordered_map<StorageId, std::pair<int, ValueId>> firstUse_;  // of parameters
  std::map<std::pair<int, ValueId>, ValueId> sentAs_;                // transmitted under another of its names
  std::unordered_map<StorageId, std::map<int, std::size_t>> users_;  // of parameters: input by stage
  std::map<int, std::vector<std::pair<ValueId, std::size_t>>> resultsOf_;
};

void placeStages(PipelineSplit& split, const std::vector<Device>& devices) {
  if (devices.empty()) return;
  if (devices.size() > 1 && devices.size() != split.stages.size())
    badUse(fmt::format("{} devices are given for {} stage{}; give one for each, or one for all", devices.size(),
                       split.stages.size(), split.stages.size() == 1 ? "" : "s"));
  for (std::size_t s = 0; s < split.stages.size(); ++s) split.stages[s].device = devices[devices.size() == 1 ? 0 : s];
}

}  // namespace

PipelineSplit splitPipeline(const Document& document, const Computation& computation, const Cuts& cuts,
                            const PipelineOptions& options) {
  auto split = Splitter(document, computation, options).run(cuts);
  placeStages(split, options.devices);
  return split;
}

std::map<std::size_t, std::string> parameterNames(const Document& document, const Computation& computation,
                                                  const PipelineStage& stage) {
  std::map<std::size_t, std::string> names;
  std::unordered_set<std::string> taken;
  std::unordered_map<ValueId, std::size_t> unseen;
  for (auto i : stage.held) {
    const auto& input = computation.inputs[i];
    if (input.kind != InputKind::parameter) continue;
    names[i] = input.target;
    taken.insert(input.target);
    unseen.try_emplace(input.value, i);
  }
  for (auto op : stage.ops)
    for (auto operand : document.operands(op)) {
      const auto first = unseen.extract(operand);
      if (!first) continue;
      auto name = nameUnder(document.text(document.boundSymbol(op).module), computation.inputs[first.mapped()]);
      if (taken.insert(name).second) names[first.mapped()] = std::move(name);
    }
  return names;
}

std::vector<std::string> unusedInputs(const Document& document, const Computation& computation) {
  std::unordered_set<ValueId> used;
  for (auto op : computation.trace.ops)
    for (auto operand : document.operands(op)) used.insert(operand);
  for (const auto& output : computation.outputs) used.insert(output.value);
  std::vector<std::string> names;
  for (const auto& input : computation.inputs)
    if (input.kind == InputKind::user && input.value && !used.contains(input.value)) names.push_back(input.name);
  return names;
}

}  // namespace retrograd
