#include "core/torch/analysis/symbolic_joint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "core/base/id_vector.h"
#include "core/derivation/size_fit.h"
#include "core/formats/files/deferred_check.h"

namespace retrograd {
namespace {

constexpr std::size_t fewestPoints = 2, mostRefusals = 3, mostNotes = 12;

/// Notes on ops, each but once.
class Notes {
 public:
  explicit Notes(const Document& document) : document_(document) {}

  void add(BoundSymbolId op, std::string message) {
    const auto& origin = document_.boundSymbol(op).origin;
    const auto of = origin.op ? origin.op : op;
    const auto& name = document_.boundSymbol(of).name;
    const auto place =
        name ? fmt::format("{}node {}", origin.role == Role::gradient ? "backward of " : "", document_.text(name))
             : document_.opName(of);
    if (!seen_.emplace(place, message).second) return;
    if (notes_.size() < mostNotes) notes_.push_back({Problem::Severity::note, std::move(message), place, of.index});
    else ++more_;
  }
  void add(std::string message) { notes_.push_back({Problem::Severity::note, std::move(message), {}, -1}); }

  std::vector<Problem> take() {
    if (more_ > 0) add(fmt::format("{} more notes on symbolic sizes", more_));
    return std::move(notes_);
  }

 private:
  const Document& document_;
  std::set<std::pair<std::string, std::string>> seen_;
  std::vector<Problem> notes_;
  std::size_t more_ = 0;
};

bool sameData(const TensorData& a, const TensorData& b) {
  requireVerified(a.data);
  requireVerified(b.data);
  return a.meta.dtype == b.meta.dtype && a.bytes == b.bytes &&
         (a.bytes == 0 || std::memcmp(a.data, b.data, a.bytes) == 0);
}

/// Sets joints op against op: the ops of one group (computation op and role) in order, so that a group that is traced
/// differently does not disturb the others.
class JointAligner {
 public:
  JointAligner(const Document& document, const JointResult& joint, Notes& notes)
      : document_(document), joint_(joint), groups_(groupsOf(document, joint)), notes_(notes) {}

  void add(const SizeBindings& sizes, const SizedJoint& other) {
    sizes_ = sizesText(sizes);
    other_ = &other;
    valueOf_.assign(document_.valueCount(), ValueId());
    for (std::size_t i = 0; i < joint_.joint.inputs.size(); ++i)
      map(joint_.joint.inputs[i], other.result.joint.inputs.at(i));
    auto pairs = pairUp();
    for (auto& pair : pairs)
      if (!pair.group->differs && !sameOperands(pair.mine, pair.others)) setApart(*pair.group);
      else if (!pair.group->differs) mapEach(document_.outputs(pair.mine), other_->document.outputs(pair.others));
    std::vector<PatternId> patterns(joint_.joint.ops.size());
    for (const auto& pair : pairs) {
      if (pair.group->differs) continue;
      patterns[pair.at] =
          samples_.internPattern(other.document.pattern(other.document.boundSymbol(pair.others).pattern));
      // What a group that was set apart hands on is known by who uses it.
      mapEach(document_.operands(pair.mine), other_->document.operands(pair.others));
    }
    compareConstants();
    IdVector<ValueId, MetaId> metas(document_.valueCount());
    IdVector<MetaId, MetaId> sampleOf(other.document.metaCount());
    for (auto v : metas.ids()) {
      const auto value = valueOf_[v];
      if (!value || !other.document.isTensor(value)) continue;
      const auto meta = other.document.value(value).meta;
      auto& sample = sampleOf[meta];
      if (!sample) sample = samples_.internMeta(other.document.meta(meta));
      metas[v] = sample;
    }
    metas_.push_back(std::move(metas));
    patterns_.push_back(std::move(patterns));
  }

  /// What value and op had at each further point; empty where they have no counterpart at one of them.
  std::vector<const TensorMeta*> metasOf(ValueId value) const {
    std::vector<const TensorMeta*> all;
    for (const auto& metas : metas_)
      if (const auto id = metas[value]) all.push_back(&samples_.meta(id));
    if (all.size() != metas_.size()) all.clear();
    return all;
  }
  std::vector<std::int32_t> metaKey(ValueId value) const {
    return keyOf(metas_, value, document_.value(value).meta.index);
  }
  std::vector<const CallPattern*> patternsOf(std::size_t op) const {
    std::vector<const CallPattern*> all;
    for (const auto& patterns : patterns_)
      if (patterns[op]) all.push_back(&samples_.pattern(patterns[op]));
    if (all.size() != patterns_.size()) all.clear();
    return all;
  }
  std::vector<std::int32_t> patternKey(std::size_t op) const {
    return keyOf(patterns_, op, document_.boundSymbol(joint_.joint.ops[op]).pattern.index);
  }

 private:
  struct Group {
    std::vector<std::size_t> ops;  ///< positions in the joint
    bool differs = false;          ///< from the joint that is being added
    bool isTold = false;
  };
  using Groups = std::map<std::pair<std::int32_t, Role>, Group>;
  struct Pair {
    std::size_t at;
    BoundSymbolId mine, others;
    Group* group;
  };

  static Groups groupsOf(const Document& document, const JointResult& result) {
    Groups groups;
    for (std::size_t i = 0; i < result.joint.ops.size(); ++i) {
      const auto& origin = document.boundSymbol(result.joint.ops[i]).origin;
      groups[{origin.op.index, origin.role}].ops.push_back(i);
    }
    return groups;
  }
  template <class Table, class Place>
  static std::vector<std::int32_t> keyOf(const Table& table, Place at, std::int32_t base) {
    std::vector<std::int32_t> key{base};
    for (const auto& ids : table) key.push_back(ids[at].index);
    return key;
  }

  bool sameCall(BoundSymbolId mine, BoundSymbolId others) const {
    const auto &a = document_.boundSymbol(mine), &b = other_->document.boundSymbol(others);
    return a.operandCount == b.operandCount && a.outputCount == b.outputCount && a.effects == b.effects &&
           document_.symbol(a.symbol).name == other_->document.symbol(b.symbol).name;
  }
  /// Ops of groups that have the same ops in both joints, in the order of the joint.
  std::vector<Pair> pairUp() {
    std::vector<Pair> pairs;
    auto otherGroups = groupsOf(other_->document, other_->result);
    for (auto& [key, group] : groups_) {
      const auto& others = otherGroups[key].ops;
      group.differs = false;
      const auto first = pairs.size();
      for (std::size_t i = 0; i < std::min(group.ops.size(), others.size()); ++i)
        pairs.push_back({group.ops[i], joint_.joint.ops[group.ops[i]], other_->result.joint.ops[others[i]], &group});
      const bool same =
          group.ops.size() == others.size() &&
          std::all_of(pairs.begin() + first, pairs.end(), [&](const Pair& p) { return sameCall(p.mine, p.others); });
      if (same) continue;
      pairs.resize(first);
      setApart(group);
    }
    std::ranges::sort(pairs, [](const Pair& a, const Pair& b) { return a.at < b.at; });
    return pairs;
  }
  /// A result of the group has no counterpart; what others make of it may have.
  void setApart(Group& group) {
    group.differs = true;
    for (auto at : group.ops)
      for (auto output : document_.outputs(joint_.joint.ops[at]))
        if (output) valueOf_[output] = {};
    if (group.ops.empty() || group.isTold) return;
    group.isTold = true;
    notes_.add(joint_.joint.ops[group.ops.front()],
               "for other sizes (" + sizes_ + ") it takes other ops: those listed are for the sizes at hand");
  }
  void map(ValueId mine, ValueId others) {
    if (mine && others && !valueOf_[mine]) valueOf_[mine] = others;
  }
  void mapEach(std::span<const ValueId> mine, std::span<const ValueId> others) {
    for (std::size_t i = 0; i < mine.size(); ++i) map(mine[i], others[i]);
  }
  /// A literal tensor inside a formula has no producer: it is known by its use.
  bool sameOperands(BoundSymbolId mine, BoundSymbolId others) {
    const auto a = document_.operands(mine), b = other_->document.operands(others);
    bool same = true;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] && !document_.value(a[i]).producer) map(a[i], b[i]);
      const auto known = a[i] ? valueOf_[a[i]] : ValueId();
      same &= a[i].valid() == b[i].valid() && (!known || known == b[i]);
    }
    return same;
  }
  void compareConstants() {
    for (const auto op : joint_.joint.ops)
      for (const auto operand : document_.operands(op)) {
        const auto mine = joint_.constants.find(operand);
        if (mine == joint_.constants.end()) continue;
        const auto others = other_->result.constants.find(valueOf_[operand]);
        if (others == other_->result.constants.end() || !sameData(mine->second, others->second))
          notes_.add(op, fmt::format("the literal tensor {} depends on the sizes: it holds for the sizes at hand",
                                     document_.displayName(operand)));
      }
  }

  const Document& document_;
  const JointResult& joint_;
  Groups groups_;
  Notes& notes_;
  Document samples_;                              // only its tables of metas and patterns are used
  std::vector<IdVector<ValueId, MetaId>> metas_;  // by point
  std::vector<std::vector<PatternId>> patterns_;  // by point, by position in the joint
  const SizedJoint* other_ = nullptr;             // while one is added
  std::string sizes_;
  IdVector<ValueId, ValueId> valueOf_;
};

/// Puts expressions in the place of numbers.
class SizeWriter {
 public:
  SizeWriter(Document& document, const JointResult& joint, const JointAligner& aligned, SizeFit& fit, Notes& notes)
      : document_(document), joint_(joint), aligned_(aligned), fit_(fit), notes_(notes) {}

  void run() {
    const auto& ops = joint_.joint.ops;
    for (auto input : joint_.joint.inputs)
      if (input && document_.isTensor(input)) write(input, {});
    for (std::size_t i = 0; i < ops.size(); ++i) {
      writeCall(i);
      const auto outputs = std::as_const(document_).outputs(ops[i]);
      for (auto output : std::vector<ValueId>(outputs.begin(), outputs.end()))
        if (output && document_.isTensor(output)) write(output, ops[i]);
    }
  }

 private:
  void write(ValueId value, BoundSymbolId op) {
    const auto samples = aligned_.metasOf(value);
    if (samples.empty()) return;
    const auto [it, isNew] = metas_.try_emplace(aligned_.metaKey(value));
    if (isNew) it->second = expressed(document_.meta(value), samples);
    document_.value(value).meta = it->second.first;
    if (!it->second.second.empty() && op)
      notes_.add(op, it->second.second + " of " + document_.displayName(value) + unknown);
  }

  std::pair<MetaId, std::string> expressed(TensorMeta meta, const std::vector<const TensorMeta*>& samples) {
    std::string trouble;
    const auto list = [&](std::vector<std::int64_t> TensorMeta::* numbers, std::vector<std::string>& symbols,
                          const char* what) {
      for (std::size_t i = 0; i < (meta.*numbers).size(); ++i) {
        if (i < symbols.size() && !symbols[i].empty()) continue;  // the file's own word
        std::vector<std::int64_t> seen{(meta.*numbers)[i]};
        for (const auto* sample : samples) seen.push_back(i < (sample->*numbers).size() ? (sample->*numbers)[i] : -1);
        const auto expression = fit_.expressionOf(seen);
        if (!expression) trouble = fmt::format("{} {}", what, seen.front());
        if (!expression || expression->empty()) continue;
        symbols.resize((meta.*numbers).size());
        symbols[i] = *expression;
      }
    };
    list(&TensorMeta::sizes, meta.symbols, "size");
    auto sizeTrouble = trouble;
    list(&TensorMeta::strides, meta.strideSymbols, "stride");
    std::vector<std::int64_t> offsets{meta.offset};
    for (const auto* sample : samples) offsets.push_back(sample->offset);
    if (meta.offsetSymbol.empty()) meta.offsetSymbol = fit_.expressionOf(offsets).value_or("");
    return {document_.internMeta(meta), sizeTrouble};
  }

  void writeCall(std::size_t at) {
    const auto samples = aligned_.patternsOf(at);
    if (samples.empty()) return;
    const auto op = joint_.joint.ops[at];
    const auto [it, isNew] = patterns_.try_emplace(aligned_.patternKey(at));
    if (isNew) {
      CallPattern pattern = document_.pattern(document_.boundSymbol(op).pattern);
      std::string trouble;
      for (std::size_t i = 0; i < pattern.arguments.size(); ++i) {
        std::vector<const Argument*> others;
        for (const auto* sample : samples)
          others.push_back(i < sample->arguments.size() ? &sample->arguments[i] : nullptr);
        express(pattern.arguments[i], others, trouble);
      }
      it->second = {document_.internPattern(pattern), trouble};
    }
    document_.boundSymbol(op).pattern = it->second.first;
    if (!it->second.second.empty()) notes_.add(op, it->second.second);
  }

  void express(Argument& argument, const std::vector<const Argument*>& others, std::string& trouble) {
    using Kind = Argument::Kind;
    const bool alike = std::ranges::all_of(others, [&](const Argument* other) {
      return other && other->kind == argument.kind && other->items.size() == argument.items.size();
    });
    if (!alike) {
      trouble = "an argument is of another form for other sizes: it holds for the sizes at hand";
      return;
    }
    for (std::size_t i = 0; i < argument.items.size(); ++i) {
      std::vector<const Argument*> items;
      for (const auto* other : others) items.push_back(&other->items[i]);
      express(argument.items[i], items, trouble);
    }
    const auto isSame = [&](const Argument* other) {
      return *other == argument || (std::isnan(argument.real) && std::isnan(other->real));
    };
    if (argument.kind == Kind::list || std::ranges::all_of(others, isSame)) return;
    const auto seen = [&](auto number) {
      std::vector<decltype(number(argument))> all{number(argument)};
      for (const auto* other : others) all.push_back(number(*other));
      return all;
    };
    std::optional<std::string> expression;
    if (argument.kind == Kind::integer)
      expression = fit_.expressionOf(seen([](const Argument& a) { return a.integer; }));
    if (argument.kind == Kind::real) expression = fit_.realExpressionOf(seen([](const Argument& a) { return a.real; }));
    if (expression) argument.text = *expression;
    else
      trouble = fmt::format(
          "the argument {}{}",
          argument.kind == Kind::real ? fmt::format("{}", argument.real) : std::to_string(argument.integer), unknown);
  }

  static constexpr const char* unknown =
      " depends on the sizes, by no expression that was found: it holds for the sizes at hand";

  Document& document_;
  const JointResult& joint_;
  const JointAligner& aligned_;
  SizeFit& fit_;
  Notes& notes_;
  std::map<std::vector<std::int32_t>, std::pair<MetaId, std::string>> metas_;
  std::map<std::vector<std::int32_t>, std::pair<PatternId, std::string>> patterns_;
};

/// The file's own expressions for sizes and numbers, shortest first, so that the joint says it as the computation does.
/// Strides follow from sizes, and in more words: "Max(1, s0)*Max(1, s1)".
std::vector<std::string> fileExpressions(const Document& document) {
  std::set<std::string> all;
  const auto add = [&](std::string_view text) {
    if (!text.empty()) all.emplace(text);
  };
  for (std::size_t i = 0; i < document.metaCount(); ++i)
    for (const auto& text : document.meta(MetaId(static_cast<std::int64_t>(i))).symbols) add(text);
  for (const auto value : document.valueIds()) add(document.sizeExpression(value));
  std::vector<std::string> sorted(all.begin(), all.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return sorted;
}

}  // namespace

std::vector<Problem> expressSizes(const ModelFile& file, JointResult& joint, const DeriveAt& deriveAt) {
  auto& document = *file.document;
  Notes notes(document);
  SizePoints candidates(file);
  if (candidates.symbols().empty()) return {};
  if (!joint.dataDependent.empty()) {
    notes.add("data decide what is run: joint, forward and backward show sizes as numbers, for the inputs at hand");
    return notes.take();
  }
  for (const auto& branch : branchConditions(document))
    notes.add(branch.op,
              fmt::format("the sizes choose its branch: what is listed is for sizes with {}", branch.condition.text));
  JointAligner aligned(document, joint, notes);
  std::vector<SizeBindings> points{document.sizeHints()};
  const auto wanted = candidates.symbols().size() == 1 ? std::size_t{5} : std::size_t{6};
  std::string refusal;
  for (std::size_t refusals = 0; points.size() < wanted && refusals < mostRefusals;) {
    const auto point = candidates.next();
    if (!point) break;
    try {
      aligned.add(*point, deriveAt(*point));
      points.push_back(*point);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& e) {
      if (const auto* error = dynamic_cast<const Error*>(&e); error && error->code() == ErrorCode::cancelled) throw;
      refusal = fmt::format("{} ({})", messageOf(e), sizesText(*point));
      candidates.multiplesOnly();
      ++refusals;
    }
  }
  if (points.size() <= fewestPoints) {
    notes.add("joint, forward and backward show sizes as numbers: " +
              (refusal.empty() ? "ranges and conditions of the file leave hardly any other sizes"
                               : "for other sizes " + refusal));
    return notes.take();
  }
  auto symbols = candidates.symbols();
  std::ranges::sort(symbols);  // as sympy orders the factors of a product
  SizeFit fit(symbols, points);
  for (const auto& expression : fileExpressions(document)) fit.know(expression);
  SizeWriter(document, joint, aligned, fit, notes).run();
  joint.joint.history.push_back({"Symbolic sizes", {{"points", std::to_string(points.size())}}, "joint", 0, {}});
  return notes.take();
}

}  // namespace retrograd
