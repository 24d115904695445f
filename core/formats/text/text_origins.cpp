// Where the ops of derived traces come from.
#include "core/base/error.h"
#include "core/formats/model/graph_ops.h"
#include "core/formats/text/text_reader.h"
#include "core/trace/implied.h"

namespace retrograd::text {
namespace {

std::optional<ValueKind> kindNamed(std::string_view text) {
  for (auto kind : {ValueKind::input, ValueKind::parameter, ValueKind::buffer, ValueKind::constant,
                    ValueKind::activation, ValueKind::cotangent, ValueKind::gradient})
    if (name(kind) == text) return kind;
  return std::nullopt;
}

Role roleOf(const OpNote& note, bool inBackward) {
  if (note.isAccumulation) return Role::accumulation;
  if (note.isRecompute) return Role::recompute;
  if (note.isZeros) return Role::zero;
  if (note.isCotangent) return Role::cotangent;
  if (note.forward) return Role::gradient;
  return note.computation || !inBackward ? Role::forward : Role::none;
}

}  // namespace

Origin TextReader::readOrigin(const OpNote& note, BoundSymbolId op, const Scope& scope) {
  Origin origin;
  origin.role = roleOf(note, scope.inBackward);
  if (!note.of.empty()) origin.value = namedAnywhere(note.of);
  if (note.isAccumulation) noteTerms(note, op, origin.value);
  const auto& reference = note.computation ? note.computation : note.forward;
  ValueId named;
  if (!reference) {
    if (origin.role == Role::forward) origin.op = ownOrigin(op, scope);
  } else if (const auto kind = kindNamed(reference->op)) {
    if (!origin.value) origin.value = namedAnywhere(reference->name);
    if (auto& value = document_.value(origin.value); !builder_.isDescribed(origin.value))
      value.kind = *kind;  // of a trace that is not in the text
  } else {
    if (const auto* known = reference->name.empty() ? nullptr : builder_.find(reference->name)) named = *known;
    origin.op = resolve(*reference, scope);
    if (!named) named = implied::firstOutput(document_, origin.op);
  }
  const auto usual = origin.role == Role::gradient ? implied::operand(document_, origin) : std::int16_t{-1};
  origin.operand = note.operand.value_or(usual);
  origin.output = note.output.value_or(implied::output(document_, origin, named));
  return origin;
}

/// A first term that is itself a sum of this gradient represents what it sums (implied::sumBefore).
void TextReader::noteTerms(const OpNote& note, BoundSymbolId op, ValueId summed) {
  std::vector<ValueId> terms;
  for (const auto& term : note.terms) terms.push_back(namedAnywhere(term));
  const auto before = terms.empty() ? sums_.end() : sums_.find(document_.value(terms.front()).producer);
  Terms sum{termLists_.size(), terms.size(), summed};
  if (before == sums_.end() || before->second.summed != summed || terms.size() != 2) {
    termLists_.push_back(std::move(terms));
  } else {
    const auto& known = before->second;
    auto& list = termLists_[known.list];
    if (list.size() == known.count) list.push_back(terms[1]);
    if (list[known.count] != terms[1])
      fail(source_, note.place,
           "expected one sum that goes on from '" + note.terms.front() + "', found another with '" + note.terms.back() +
               "'");
    sum = {known.list, known.count + 1, summed};
  }
  sums_[op] = sum;
}

/// When all is read, as lists have grown until then.
void TextReader::setTerms() {
  std::vector<Origin> shared(termLists_.size());
  for (std::size_t i = 0; i < termLists_.size(); ++i) document_.setTerms(shared[i], termLists_[i]);
  for (const auto& [op, sum] : sums_) {
    auto& origin = document_.boundSymbol(op).origin;
    origin.termsBegin = shared[sum.list].termsBegin;
    origin.termCount = static_cast<std::uint32_t>(sum.count);
  }
}

/// A line of a forward that names no op represents the computation's op that makes the same.
BoundSymbolId TextReader::ownOrigin(BoundSymbolId op, const Scope& scope) {
  const auto output = implied::firstOutput(document_, op);
  const auto symbol = document_.boundSymbol(op).symbol;
  const auto place = places_[op];
  if (!output)
    fail(source_, place,
         "expected the op of the computation it comes from, such as '# computation: x: "
         "\"torch.ops.aten.linear.default\"'");
  if (const auto producer = producers_[output]; producer && document_.boundSymbol(producer).symbol == symbol)
    return producer;
  if (result_.computation)
    fail(source_, place,
         "expected '" + document_.displayName(output) +
             "' to be made by this op in the computation, or a comment that names the op it comes from");
  return standIn(document_.displayName(output), document_.symbol(symbol).qualifiedName(), scope);
}

BoundSymbolId TextReader::resolve(const Reference& reference, const Scope& scope) {
  const auto fits = [&](BoundSymbolId op) { return reference.op.empty() || document_.opName(op) == reference.op; };
  if (const auto* value = builder_.find(reference.name))
    if (const auto producer = producers_[*value]; producer && fits(producer)) return producer;
  if (const auto node = nodes_.find(reference.name); node != nodes_.end() && fits(node->second)) return node->second;
  if (result_.computation)
    fail(source_, reference.place,
         "expected an op of the computation, found '" + reference.name + "'" +
             (reference.op.empty() ? "" : ": \"" + reference.op + "\""));
  if (reference.op.empty())
    fail(source_, reference.place,
         "expected the op's name in quotes behind '" + reference.name + ":', as the text has no computation");
  return standIn(reference.name, reference.op, scope);
}

/// In place of an op of a computation that is not in the text: an op of that name, which makes a value of that name.
BoundSymbolId TextReader::standIn(const std::string& name, const std::string& op, const Scope& scope) {
  const auto standIn = builder_.standIn(name, op, placeOf(scope));
  grow();
  return standIn;
}

/// The draw that a recomputed one replays.
BoundSymbolId TextReader::original(ValueId value, SymbolId symbol) {
  auto& producer = derivedProducers_[value];
  if (producer) return producer;
  BoundSymbol bound;  // of a forward that is not in the text
  bound.symbol = symbol;
  bound.pattern = document_.internPattern({});
  const auto op = document_.addBoundSymbol(bound, {}, std::array{value});
  return producer = op;
}

}  // namespace retrograd::text
