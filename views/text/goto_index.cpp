#include "views/text/goto_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/id_vector.h"
#include "core/base/op_name.h"
#include "core/derivation/gradient_of.h"
#include "core/formats/recording/recording.h"
#include "core/notes/note_words.h"
#include "core/trace/source.h"
#include "core/trace/symbol.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool sameLetters(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

std::size_t findLetters(std::string_view text, std::string_view word) {
  const auto it = std::search(text.begin(), text.end(), word.begin(), word.end(),
                              [](char x, char y) { return lower(x) == lower(y); });
  return it == text.end() && !word.empty() ? std::string_view::npos : static_cast<std::size_t>(it - text.begin());
}

bool isSubsequence(std::string_view word, std::string_view text) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < text.size() && at < word.size(); ++i) at += lower(text[i]) == lower(word[at]);
  return at == word.size();
}

const char* kindText(InputKind kind) {
  switch (kind) {
    case InputKind::parameter: return "parameter";
    case InputKind::buffer: return "buffer";
    case InputKind::constant: return "constant";
    default: return "input";
  }
}

class Collector {
 public:
  Collector(const Analysis& analysis, const Progress& progress)
      : analysis_(analysis), document_(*analysis.document), progress_(progress) {}

  std::vector<Place> run() {
    findMakers();
    inputs();
    if (analysis_.file.recording) {
      states(*analysis_.file.recording);
      sections(*analysis_.file.recording);
    }
    lines();
    modules();
    ops(analysis_.computation().trace.ops, Place::Kind::operation);
    for (auto id : document_.subgraphIds()) ops(document_.subgraph(id).ops, Place::Kind::operation);
    if (analysis_.derived()) ops(analysis_.joint.ops, Place::Kind::op);
    return std::move(places_);
  }

 private:
  void inputs() {
    std::map<ValueId, BoundSymbolId> firstUse;
    for (auto op : analysis_.computation().trace.ops)
      for (auto operand : document_.operands(op)) firstUse.try_emplace(operand, op);
    const auto gradients = analysis_.derived() ? gradientsOfInputs(analysis_) : std::vector<ValueId>();
    const auto& all = analysis_.computation().inputs;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& input = all[i];
      if (!input.value || keptOfParameters_.contains(document_.value(input.value).storage)) continue;
      const auto use = firstUse.find(input.value);
      std::string detail = kindText(input.kind);
      if (const auto meta = document_.value(input.value).meta)
        detail += "  " + typeText(document_.meta(meta)).toStdString();
      // By the name that the model's own code has; that of the graph is found too.
      const auto& name = input.target.empty() ? input.name : input.target;
      if (name != input.name) detail += "  " + input.name;
      add({Place::Kind::input, name, detail, use == firstUse.end() ? BoundSymbolId() : use->second, input.value});
      if (input.kind == InputKind::parameter) gradient(name, i < gradients.size() ? gradients[i] : ValueId());
    }
  }

  void gradient(const std::string& name, ValueId value) {
    if (const auto& recording = analysis_.file.recording)
      if (const auto known = recording->gradients.find(name); known != recording->gradients.end())
        value = known->second;
    if (value) made(Place::Kind::gradient, name + ".grad", "gradient", value);
  }

  /// Where the value was made last.
  void made(Place::Kind kind, std::string name, std::string detail, ValueId value) {
    if (const auto meta = document_.value(value).meta) detail += "  " + typeText(document_.meta(meta)).toStdString();
    detail += "  " + document_.displayName(value);
    add({kind, std::move(name), std::move(detail), makers_[value], value});
  }

  void findMakers() {
    makers_ = IdVector<ValueId, BoundSymbolId>(document_.valueCount());
    for (const auto* trace : {&analysis_.computation().trace, &analysis_.joint})
      for (auto op : trace->ops)
        for (auto output : document_.outputs(op))
          if (output) makers_[output] = op;
    if (const auto& recording = analysis_.file.recording)
      for (const auto& name : recording->names)
        if (name.role == "optimizer" || name.role == "gradient") keptOfParameters_.emplace(name.storage, &name);
  }

  /// What the optimizer keeps of each parameter.
  void states(const StepRecording& recording) {
    for (const auto& [parameter, values] : recording.states)
      for (auto value : values) {
        const auto known = keptOfParameters_.find(document_.value(value).storage);
        if (known == keptOfParameters_.end() || known->second->state.empty()) continue;
        made(Place::Kind::state, known->second->state + " of " + parameter, "optimizer", value);
      }
  }

  void sections(const StepRecording& recording) {
    const auto& ops = analysis_.computation().trace.ops;
    const auto all = sectionsOf(recording, ops);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto end = i + 1 < all.size() ? all[i + 1].begin : ops.size();
      add({Place::Kind::section,
           all[i].title,
           fmt::format("part of the step, {} ops", end - all[i].begin),
           ops[all[i].begin],
           {}});
    }
  }

  /// Each line of Python that ops come from, with the first of them.
  void lines() {
    std::set<std::pair<std::string_view, int>> known;
    std::set<SourceStackId> stacks;
    for (auto op : analysis_.computation().trace.ops) {
      const auto source = document_.boundSymbol(op).source;
      if (!source || !stacks.insert(source).second) continue;
      const auto* frame = shownFrame(document_.source(source));
      if (!frame || !known.emplace(frame->file, frame->line).second) continue;
      const auto file = frame->file.substr(frame->file.find_last_of("/\\") + 1);
      add({Place::Kind::line, fmt::format("{}:{}", file, frame->line), frame->code, op, {}});
    }
  }

  /// Each path and each of the paths above it, with the first of its ops.
  void modules() {
    std::map<std::string, std::pair<BoundSymbolId, std::size_t>, std::less<>> found;
    for (auto op : analysis_.computation().trace.ops) {
      auto path = document_.text(document_.boundSymbol(op).module);
      while (!path.empty()) {
        auto it = found.find(path);
        if (it == found.end()) it = found.emplace(std::string(path), std::pair{op, std::size_t{0}}).first;
        ++it->second.second;
        const auto dot = path.rfind('.');
        path = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
      }
    }
    for (const auto& [path, first] : found)
      add({Place::Kind::module,
           path,
           "module, " + std::to_string(first.second) + (first.second == 1 ? " op" : " ops"),
           first.first,
           {}});
  }

  void ops(const std::vector<BoundSymbolId>& all, Place::Kind kind) {
    for (auto op : all) {
      const auto& bound = document_.boundSymbol(op);
      std::string name;
      for (auto output : document_.outputs(op))
        if (output) name += (name.empty() ? "" : ", ") + document_.displayName(output);
      auto detail = document_.symbol(bound.symbol).name;
      if (const auto module = document_.text(bound.module); !module.empty()) detail += "  " + std::string(module);
      add({kind, std::move(name), std::move(detail), op, {}});
    }
  }

  void add(Place place) {
    if (places_.size() % 4096 == 0) progress_.check();
    places_.push_back(std::move(place));
  }

  const Analysis& analysis_;
  const Document& document_;
  const Progress& progress_;
  IdVector<ValueId, BoundSymbolId> makers_;  ///< the op that makes a value; that of the joint where it runs
  std::map<StorageId, const RecordedName*> keptOfParameters_;  ///< gradients and states of the optimizer
  std::vector<Place> places_;
};

/// 0: it does not match; else more is better.
int score(const Place& place, const std::vector<std::string_view>& words, std::string_view query) {
  int total = 0;
  for (auto word : words) {
    const int inName = fit(word, place.name),
              inDetail = findLetters(place.detail, word) != std::string_view::npos ? 10 : 0;
    if (inName == 0 && inDetail == 0) return 0;
    total += std::max(inName, inDetail);
  }
  if (sameLetters(query, place.name)) total += 1000;
  constexpr int longest = 60;  // of two that fit alike the shorter name, and what is not an op, comes first
  return total * 100 + std::max(0, longest - static_cast<int>(place.name.size())) +
         (place.kind == Place::Kind::op ? 0 : 20);
}

constexpr int asNumber = 1'000'000;  ///< before all that has the digits in its name

int isOfNumber(const Place& place, std::int32_t number) {
  return (place.kind == Place::Kind::operation || place.kind == Place::Kind::op) && place.op.index == number ? 1 : 0;
}

}  // namespace

int fit(std::string_view word, std::string_view text) {
  const auto at = findLetters(text, word);
  if (at == 0) return word.size() == text.size() ? 60 : 40;
  if (at != std::string_view::npos) return text[at - 1] == '.' || text[at - 1] == '_' || text[at - 1] == ' ' ? 30 : 20;
  return isSubsequence(word, text) ? 5 : 0;
}

std::vector<Place> places(const Analysis& analysis, const Progress& progress) {
  return Collector(analysis, progress).run();
}

std::vector<Place> namedPlaces(const Analysis& analysis, const std::vector<Place>& all,
                               const std::vector<std::pair<ValueId, std::string>>& names) {
  const auto& document = *analysis.document;
  std::vector<Place> named;
  for (const auto& [value, name] : names) {
    const auto maker = makerOf(analysis, value);
    const auto known = std::ranges::find_if(
        all, [&, value = value](const Place& place) { return maker ? place.op == maker : place.value == value; });
    if (known == all.end()) continue;
    named.push_back({Place::Kind::named, name, document.displayName(value) + "  " + known->detail, known->op, value});
  }
  return named;
}

std::vector<std::size_t> match(const std::vector<Place>& places, std::string_view query, std::size_t limit,
                               const Progress& progress) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < query.size();) {
    const auto end = std::min(query.find(' ', begin), query.size());
    if (end > begin) words.push_back(query.substr(begin, end - begin));
    begin = end + 1;
  }
  const auto number = opNumber(query), plain = numberIn<std::int32_t>(query);
  std::vector<std::pair<int, std::size_t>> scored;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i % 4096 == 0) progress.check();
    int points = number ? isOfNumber(places[i], *number) : words.empty() ? 1 : score(places[i], words, query);
    if (plain && isOfNumber(places[i], *plain)) points = asNumber;
    if (points > 0) scored.emplace_back(-points, i);  // of equals the first in order
  }
  const auto count = std::min(limit, scored.size());
  std::partial_sort(scored.begin(), scored.begin() + count, scored.end());
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < count; ++i) best.push_back(scored[i].second);
  return best;
}

}  // namespace retrograd::views
