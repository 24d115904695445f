#include "core/formats/jobs/shared_draws.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/formats/jobs/line_links.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

using fx::Expression;
using Kind = Expression::Kind;

constexpr std::string_view saves = "torch.ops.higher_order.run_and_save_rng_state",
                           repeats = "torch.ops.higher_order.run_with_rng_state",
                           graphsafe = "torch.ops.higher_order.graphsafe_run_with_rng_state";

/// `items[1]` where this is `value[items[1]]` with a plain number.
std::optional<std::int64_t> itemOf(const Expression& call, std::size_t value) {
  if (!call.is(Kind::item) || !call.items[0].is(Kind::value) || !call.items[1].is(Kind::integer)) return std::nullopt;
  return call.items[0].valueIndex() == value ? std::optional(call.items[1].integer) : std::nullopt;
}

/// A call that runs the op in its argument `op`; the values are those of its arguments behind it.
bool runsWithState(const Expression& call, std::string_view path, std::size_t op) {
  return call.isCallOf(path) && call.items.size() > op && call.items[op].is(Kind::path);
}

bool isSeeds(const Expression& call) { return call.isCallOf("torch.ops.prims.inductor_seeds.default"); }

/// Makes numbers of a seed: the same numbers for the same arguments.
bool isSeeded(const Expression& call) {
  return call.isCallOf("torch.ops.prims.inductor_random.default") ||
         call.isCallOf("torch.ops.prims.inductor_randint.default");
}

/// An argument of a call as effectsOf() reads it.
Argument literalOf(const Expression& e) {
  switch (e.kind) {
    case Kind::none: return Argument::ofNone();
    case Kind::boolean: return Argument::ofBool(e.integer != 0);
    case Kind::integer: return Argument::ofInt(e.integer);
    case Kind::real: return Argument::ofReal(e.real);
    default: return Argument::ofOperand(0);
  }
}

/// Whether a call of an op draws from the generator, its literals considered.
bool draws(const Expression& call, const SymbolLookup& lookup) {
  constexpr std::string_view prefix = "torch.ops.";
  if (!call.is(Kind::call) || !call.items[0].is(Kind::path) || !call.items[0].text.starts_with(prefix)) return false;
  const auto symbol = lookup(std::string_view(call.items[0].text).substr(prefix.size()));
  if (!symbol || !symbol->isRandom) return false;
  std::vector<Argument> arguments(symbol->arguments.size(), Argument::ofMissing());
  for (std::size_t i = 1; i < call.items.size(); ++i) {
    const auto& item = call.items[i];
    const auto position = item.is(Kind::keyword) ? symbol->argumentIndex(item.text) : static_cast<int>(i) - 1;
    if (position >= 0 && position < std::ssize(arguments))
      arguments[position] = literalOf(item.is(Kind::keyword) ? item.items[0] : item);
  }
  return (effectsOf(*symbol, arguments) & effect::random) != 0;
}

/// "rand" of "torch.ops.aten.rand_like.default".
std::string kindOfDraw(std::string_view target) {
  target = target.substr(0, target.rfind('.'));
  target = target.substr(target.rfind('.') + 1);
  if (target.ends_with("_like")) target.remove_suffix(5);
  return std::string(target);
}

/// "rand" or "randn" of prims.inductor_random, which says it; "randint" of prims.inductor_randint.
std::string kindOfSeeded(const Expression& call) {
  return call.items.size() > 3 && call.items[3].is(Kind::string) ? call.items[3].text : "randint";
}

/// Takes the state out of a call that runs an op with one, and returns the state; nullopt for any other call.
std::optional<Expression> takeState(Expression& call) {
  if (runsWithState(call, repeats, 2)) {
    auto state = std::move(call.items[1]);
    call.items.erase(call.items.begin(), call.items.begin() + 2);
    return state;
  }
  if (!runsWithState(call, graphsafe, 1)) return std::nullopt;
  call.items.erase(call.items.begin());
  Expression state;
  std::erase_if(call.items, [&](const Expression& item) {
    if (!item.is(Kind::keyword) || item.text != "rng_state") return false;
    state = item.items[0];
    return true;
  });
  return state;
}

/// The node of a graph that makes a value; null for an input.
const fx::Node* producer(const fx::Graph& graph, std::size_t value) {
  return value < graph.inputs.size() || value >= graph.valueCount() ? nullptr
                                                                    : &graph.nodes[value - graph.inputs.size()];
}

/// The call whose generator's state the output of the forward is; nullopt for anything else.
std::optional<std::size_t> callOfState(const fx::Graph& forward, std::size_t output) {
  const auto& value = forward.outputs[output].value;
  const auto* item = value.is(Kind::value) ? producer(forward, value.valueIndex()) : nullptr;
  if (item == nullptr || !item->call.is(Kind::item) || !item->call.items[0].is(Kind::value)) return std::nullopt;
  const auto base = item->call.items[0].valueIndex();
  const auto* call = producer(forward, base);
  return itemOf(item->call, base) == 0 && call != nullptr && runsWithState(call->call, saves, 1) ? std::optional(base)
                                                                                                 : std::nullopt;
}

/// Names values by what they are computed from: a value of the backward has the name of the forward's value that it
/// equals.
class Names {
 public:
  Names(const fx::Graph& graph, char letter) : graph_(graph), letter_(letter), names_(graph.valueCount()) {}

  std::string text(const Expression& call) const { return fx::toText(call, names_); }
  const std::string& operator[](std::size_t value) const { return names_[value]; }
  void set(std::size_t value, std::string name) { names_[value] = std::move(name); }
  /// A name that no other value has; a size has that of its expression, the same in both graphs.
  void setOwn(std::size_t value) {
    const auto* size = sizeOf(value);
    names_[value] = size != nullptr ? "size(" + size->expression + ")" : fmt::format("{}{}", letter_, value);
  }
  bool isSize(std::size_t value) const { return sizeOf(value) != nullptr; }
  void append() { names_.emplace_back(); }

 private:
  const fx::Type* sizeOf(std::size_t value) const {
    const auto type = graph_.valueType(value);
    const bool isNumber = type != fx::noIndex && graph_.types[type].kind == fx::Type::Kind::number;
    return isNumber ? &graph_.types[type] : nullptr;
  }

  const fx::Graph& graph_;
  char letter_;
  std::vector<std::string> names_;
};

class Tie {
 public:
  Tie(JobGraphs& graphs, const SymbolLookup& lookup)
      : graphs_(graphs),
        forward_(graphs.forward),
        backward_(graphs.backward),
        lookup_(lookup),
        forwardNames_(forward_, 'f'),
        backwardNames_(backward_, 'b') {}

  void tie() {
    pairStates();
    drawPlainly(forward_);
    nameForward();
    nameInputs();
    for (std::size_t n = 0; n < backward_.nodes.size(); ++n) nameNode(n);
    for (const auto& [input, call] : calls_) backward_.inputs[input].dropped = true;
  }

 private:
  /// Which call of the forward left the state that an input of the backward is.
  void pairStates() {
    std::unordered_map<std::string_view, std::size_t> generators;  // by the end of its name, "0"
    for (std::size_t n = 0; n < forward_.nodes.size(); ++n) {
      const auto& call = forward_.nodes[n].call;
      const auto* state = runsWithState(call, graphsafe, 1) ? call.keyword("rng_state") : nullptr;
      if (state == nullptr || !state->is(Kind::value) || state->valueIndex() >= forward_.inputs.size()) continue;
      const std::string_view name = forward_.inputs[state->valueIndex()].name;
      if (isGeneratorState(forward_.inputs[state->valueIndex()]))
        generators.emplace(name.substr(generatorPrefix), forward_.inputs.size() + n);
    }
    for (std::size_t i = 0; i < backward_.inputs.size(); ++i) {
      const auto& input = backward_.inputs[i];
      if (isGeneratorState(input)) {
        const auto found = generators.find(std::string_view(input.name).substr(generatorPrefix));
        if (found != generators.end()) calls_.emplace(i, found->second);
      } else if (graphs_.savedFrom[i]) {
        if (const auto call = callOfState(forward_, *graphs_.savedFrom[i])) calls_.emplace(i, *call);
      }
    }
  }

  void nameForward() {
    for (std::size_t i = 0; i < forward_.inputs.size(); ++i) forwardNames_.setOwn(i);
    for (std::size_t n = 0; n < forward_.nodes.size(); ++n) {
      auto& call = forward_.nodes[n].call;
      const auto value = forward_.inputs.size() + n;
      forwardNames_.setOwn(value);
      if (forwardNames_.isSize(value) || isSeeds(call) || draws(call, lookup_)) continue;
      if (call.is(Kind::value)) {
        forwardNames_.set(value, forwardNames_[call.valueIndex()]);
        continue;
      }
      const auto [known, isNew] = known_.emplace(forwardNames_.text(call), value);
      if (!isNew) forwardNames_.set(value, forwardNames_[known->second]);
      if (!isNew && isSeeded(call)) call = fx::valueAt(known->second);  // the same numbers
    }
  }

  void nameInputs() {
    for (std::size_t i = 0; i < backward_.inputs.size(); ++i) {
      backwardNames_.setOwn(i);
      if (!graphs_.savedFrom[i] || backwardNames_.isSize(i)) continue;
      const auto& saved = forward_.outputs[*graphs_.savedFrom[i]].value;
      if (saved.is(Kind::value)) backwardNames_.set(i, forwardNames_[saved.valueIndex()]);
    }
  }

  void nameNode(std::size_t n) {
    if (given_.contains(n)) return;
    auto& call = backward_.nodes[n].call;
    const auto value = backward_.inputs.size() + n;
    backwardNames_.setOwn(value);
    if (backwardNames_.isSize(value)) return;
    if (call.is(Kind::value)) return backwardNames_.set(value, backwardNames_[call.valueIndex()]);
    if (const auto state = takeState(call)) {
      if (repeatsForward(*state, call)) return tieCall(n, calls_.at(state->valueIndex()));
      if (isSeeds(call)) return;
    }
    if (isSeeds(call)) return;
    if (draws(call, lookup_)) return graphs_.ownDraws.push_back(n);
    const auto known = known_.find(backwardNames_.text(call));
    if (known != known_.end()) backwardNames_.set(value, forwardNames_[known->second]);
    if (!isSeeded(call)) return;
    known == known_.end() ? graphs_.ownDraws.push_back(n) : give(n, known->second);
  }

  /// Whether a call runs what the forward ran, on the same operands, from the state that the forward left.
  bool repeatsForward(const Expression& state, const Expression& call) const {
    if (!state.is(Kind::value)) return false;
    const auto drawn = calls_.find(state.valueIndex());
    if (drawn == calls_.end()) return false;
    const auto& of = producer(forward_, drawn->second)->call;
    return backwardNames_.text(call) == forwardNames_.text(of) || drawsAlike(call, of);
  }

  /// Whether both draw like tensors of one type, whose contents do not matter: the backward may have computed its own
  /// again, from other draws.
  bool drawsAlike(const Expression& call, const Expression& of) const {
    const auto likeOf = [](const Expression& e) -> const Expression* {
      const bool isLike = e.is(Kind::call) && e.items.size() > 1 && e.items[0].is(Kind::path) &&
                          e.items[0].text.find("_like.") != std::string::npos && e.items[1].is(Kind::value);
      return isLike ? &e.items[1] : nullptr;
    };
    const auto *mine = likeOf(call), *theirs = likeOf(of);
    if (mine == nullptr || theirs == nullptr) return false;
    const auto typeOf = [](const fx::Graph& graph, const Expression& e) {
      const auto type = graph.valueType(e.valueIndex());
      return type == fx::noIndex ? nullptr : &graph.types[type];
    };
    const auto *a = typeOf(backward_, *mine), *b = typeOf(forward_, *theirs);
    if (a == nullptr || b == nullptr || a->kind != fx::Type::Kind::tensor || a->text != b->text) return false;
    const auto without = [](Expression e) {
      e.items.erase(e.items.begin() + 1);
      return e;
    };
    return backwardNames_.text(without(call)) == forwardNames_.text(without(of));
  }

  /// The results of node `n` become those of a call of the forward.
  void tieCall(std::size_t n, std::size_t drawn) {
    auto& call = backward_.nodes[n].call;
    const auto value = backward_.inputs.size() + n;
    backwardNames_.set(value, forwardNames_[drawn]);
    if (isSeeds(call) || !draws(call, lookup_)) return;  // what is made of the seeds is tied
    bool hasItems = false;
    for (auto later = n + 1; later < backward_.nodes.size(); ++later) {
      const auto item = itemOf(backward_.nodes[later].call, value);
      if (item) give(later, forwardItem(drawn, *item));
      hasItems |= item.has_value();
    }
    if (!hasItems) return give(n, drawn);
    call = fx::valueAt(calls_.begin()->first);  // nobody reads it
  }

  /// The value of the forward that is this result of a call; a new one where nobody took it.
  std::size_t forwardItem(std::size_t call, std::int64_t item) {
    for (std::size_t k = 0; k < forward_.nodes.size(); ++k)
      if (itemOf(forward_.nodes[k].call, call) == item) return forward_.inputs.size() + k;
    fx::Node node;
    node.name = fmt::format("{}_item_{}", forward_.valueName(call), item);
    node.call.kind = Kind::item;
    node.call.items = {fx::valueAt(call), Expression()};
    node.call.items[1].kind = Kind::integer;
    node.call.items[1].integer = item;
    forward_.nodes.push_back(std::move(node));
    forwardNames_.append();
    forwardNames_.setOwn(forward_.valueCount() - 1);
    return forward_.valueCount() - 1;
  }

  /// The node of the backward becomes this value of the forward.
  void give(std::size_t n, std::size_t value) {
    auto& node = backward_.nodes[n];
    backwardNames_.set(backward_.inputs.size() + n, forwardNames_[value]);
    given_.insert(n);
    node.call = Expression();
    node.call.kind = Kind::path;
    node.call.text = "self.drawn_in_forward";
    if (const auto type = forward_.valueType(value); node.type == fx::noIndex && type != fx::noIndex) {
      node.type = static_cast<std::uint32_t>(backward_.types.size());
      backward_.types.push_back(forward_.types[type]);
    }
    graphs_.shared.emplace_back(n, forward_.outputs.size());
    forward_.outputs.push_back({fx::valueAt(value), {}, 0});
  }

  JobGraphs& graphs_;
  fx::Graph& forward_;
  fx::Graph& backward_;
  const SymbolLookup& lookup_;
  Names forwardNames_, backwardNames_;
  std::unordered_map<std::string, std::size_t> known_;  ///< values of the forward by what they are computed from
  std::unordered_map<std::size_t, std::size_t>
      calls_;                              ///< by input of the backward that is a state: the forward's call
  std::unordered_set<std::size_t> given_;  ///< nodes of the backward
};

/// The values that are item 0 (the state) and item 1 (the result) of a call that saves the state.
void dropState(fx::Graph& forward, std::size_t n) {
  const auto value = forward.inputs.size() + n;
  std::vector<std::size_t> states, results;
  for (std::size_t k = n + 1; k < forward.nodes.size(); ++k) {
    const auto item = itemOf(forward.nodes[k].call, value);
    if (item == 0) states.push_back(k);
    if (item == 1) results.push_back(k);
  }
  for (const auto result : results) {
    for (auto& later : forward.nodes)
      if (itemOf(later.call, forward.inputs.size() + result)) later.call.items[0] = fx::valueAt(value);
    if (forward.nodes[n].type == fx::noIndex) forward.nodes[n].type = forward.nodes[result].type;
    if (forward.nodes[n].source == fx::noIndex) forward.nodes[n].source = forward.nodes[result].source;
  }
  for (const auto& aliases : {states, results})
    for (const auto alias : aliases) forward.nodes[alias].call = fx::valueAt(value);
  for (auto& output : forward.outputs)
    for (const auto state : states)
      if (output.value.is(Kind::value) && output.value.valueIndex() == forward.inputs.size() + state)
        output.value = Expression();
}

}  // namespace

void drawPlainly(fx::Graph& forward) {
  for (std::size_t n = 0; n < forward.nodes.size(); ++n) {
    auto& call = forward.nodes[n].call;
    takeState(call);
    if (!runsWithState(call, saves, 1)) continue;
    call.items.erase(call.items.begin());
    dropState(forward, n);
  }
}

std::vector<std::string> drawsOf(const fx::Graph& graph, std::size_t nodes, const SymbolLookup& lookup) {
  std::vector<std::string> found;
  for (std::size_t n = 0; n < std::min(nodes, graph.nodes.size()); ++n) {
    const auto& node = graph.nodes[n];
    const bool isOfSeed = isSeeded(node.call);
    if (!isOfSeed && !draws(node.call, lookup)) continue;
    const auto name = isOfSeed ? kindOfSeeded(node.call) : kindOfDraw(node.call.items[0].text);
    const auto* type = node.type == fx::noIndex ? nullptr : &graph.types[node.type];
    found.push_back(type == nullptr ? name : fmt::format("{} [{}]", name, fmt::join(type->sizes, ", ")));
  }
  return found;
}

namespace {

/// The nodes of a graph's first `nodes` that draw.
std::vector<std::size_t> drawing(const fx::Graph& graph, std::size_t nodes, const SymbolLookup& lookup) {
  std::vector<std::size_t> found;
  for (std::size_t n = 0; n < std::min(nodes, graph.nodes.size()); ++n)
    if (isSeeded(graph.nodes[n].call) || draws(graph.nodes[n].call, lookup)) found.push_back(n);
  return found;
}

std::optional<DType> dtypeOf(const fx::Graph& graph, const fx::Node& node) {
  const auto* type = node.type == fx::noIndex ? nullptr : &graph.types[node.type];
  return type != nullptr && type->kind == fx::Type::Kind::tensor ? std::optional(type->dtype) : std::nullopt;
}

/// Makes a draw of another type one of float32 that is cast, as Inductor draws: both graphs have the same numbers then.
class DrawsInSingle {
 public:
  DrawsInSingle(fx::Graph& graph, const std::unordered_set<std::size_t>& nodes) : graph_(graph), nodes_(nodes) {}

  void run() {
    std::vector<fx::Node> before;
    before.swap(graph_.nodes);
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) moved_.push_back(i);
    for (std::size_t n = 0; n < before.size(); ++n) {
      auto& node = before[n];
      fx::moveValues(node.call, moved_);
      if (nodes_.contains(n)) addDraw(node);
      moved_.push_back(graph_.valueCount());
      graph_.nodes.push_back(std::move(node));
    }
    for (auto& output : graph_.outputs) fx::moveValues(output.value, moved_);
  }

 private:
  void addDraw(fx::Node& node) {
    auto draw = node;
    draw.name += "__single";
    auto type = graph_.types[node.type];
    type.dtype = DType::f32;
    draw.type = static_cast<std::uint32_t>(graph_.types.size());
    graph_.types.push_back(std::move(type));
    Expression own;
    for (auto& item : draw.call.items)
      if (item.is(Kind::keyword) && item.text == "dtype") own = std::exchange(item.items[0], fx::path("torch.float32"));
    graph_.nodes.push_back(std::move(draw));
    node.call = fx::callOf("torch.ops.prims.convert_element_type.default", {fx::valueAt(graph_.valueCount() - 1), own});
  }

  fx::Graph& graph_;
  const std::unordered_set<std::size_t>& nodes_;
  std::vector<std::size_t> moved_;
};

/// The joint graph draws as the forward does.
void drawAlike(JobGraphs& graphs, const SymbolLookup& lookup) {
  if (!graphs.joint) return;
  auto& joint = *graphs.joint;
  const auto ours = drawing(graphs.forward, graphs.forward.nodes.size(), lookup);
  const auto theirs = drawing(joint, jobs::backwardBorder(joint), lookup);
  if (ours.size() != theirs.size()) return;
  std::unordered_set<std::size_t> nodes;
  for (std::size_t k = 0; k < ours.size(); ++k) {
    const auto& node = joint.nodes[theirs[k]];
    const auto type = dtypeOf(joint, node);
    if (type && isFloating(*type) && *type != DType::f32 && node.call.keyword("dtype") != nullptr &&
        dtypeOf(graphs.forward, graphs.forward.nodes[ours[k]]) == DType::f32)
      nodes.insert(theirs[k]);
  }
  if (!nodes.empty()) DrawsInSingle(joint, nodes).run();
}

}  // namespace

void tieDraws(JobGraphs& graphs, const SymbolLookup& lookup) {
  Tie(graphs, lookup).tie();
  drawAlike(graphs, lookup);
}

}  // namespace retrograd
