#include "views/text/goto_index.h"

#include <algorithm>
#include <map>

#include "core/base/op_name.h"
#include "core/notes/note_words.h"
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
    inputs();
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
    for (const auto& input : analysis_.computation().inputs) {
      if (!input.value) continue;
      const auto use = firstUse.find(input.value);
      std::string detail = kindText(input.kind);
      if (const auto meta = document_.value(input.value).meta)
        detail += "  " + typeText(document_.meta(meta)).toStdString();
      add({Place::Kind::input, input.name, std::move(detail), use == firstUse.end() ? BoundSymbolId() : use->second,
           input.value});
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
  const auto number = opNumber(query);
  std::vector<std::pair<int, std::size_t>> scored;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i % 4096 == 0) progress.check();
    const int points = number ? isOfNumber(places[i], *number) : words.empty() ? 1 : score(places[i], words, query);
    if (points > 0) scored.emplace_back(-points, i);  // of equals the first in order
  }
  const auto count = std::min(limit, scored.size());
  std::partial_sort(scored.begin(), scored.begin() + count, scored.end());
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < count; ++i) best.push_back(scored[i].second);
  return best;
}

}  // namespace retrograd::views
