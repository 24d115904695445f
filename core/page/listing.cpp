// The listings: which ops they show, and what the script reads to show them.
#include <fmt/format.h>

#include <map>

#include "core/derivation/gradient_of.h"
#include "core/formats/recording/recording.h"
#include "core/page/html.h"
#include "core/page/sections.h"
#include "core/questions/op_facts.h"
#include "core/trace/print/printer.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

/// Numbers the texts that many ops share: paths of modules, lines of source, types.
class Texts {
 public:
  std::size_t number(std::string_view text) {
    const auto [at, isNew] = numbers_.emplace(text, all_.size());
    if (isNew) all_.push_back(&at->first);
    return at->second;
  }
  const std::vector<const std::string*>& all() const { return all_; }

 private:
  std::map<std::string, std::size_t, std::less<>> numbers_;
  std::vector<const std::string*> all_;
};

class ListingData {
 public:
  ListingData(const Page& page, const Progress& progress)
      : page_(page),
        analysis_(*page.analysis),
        document_(*analysis_.document),
        facts_(analysis_),
        gradients_(gradientsOfValues(analysis_)),
        progress_(progress) {
    for (const auto& stretch : stretchesOf(analysis_))
      for (auto i = stretch.begin; i < stretch.end; ++i)
        sections_[analysis_.joint.ops[i]] = texts_.number(stretch.title);
  }

  std::string text() {
    const auto listings = listingsOf(analysis_);
    json_ = "{\"sides\":[";
    side(listings.left);
    json_ += ",";
    side(listings.right);
    json_ += "],\n\"values\":[";
    for (std::size_t i = 0; i < order_.size(); ++i) value(order_[i], i);  // grows while gradients are met
    json_ += "],\n\"texts\":[";
    for (std::size_t i = 0; i < texts_.all().size(); ++i) json_ += (i ? ",\n" : "") + scriptText(*texts_.all()[i]);
    return json_ + "]}";
  }

 private:
  void side(const std::vector<BoundSymbolId>& ops) {
    json_ += "[";
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (i % 1024 == 0) progress_.check();
      json_ += i ? ",\n" : "";
      op(ops[i]);
    }
    json_ += "]";
  }

  /// Id, call, section, module, line, role, origin or -1, values read, values made.
  void op(BoundSymbolId op) {
    const auto origin = facts_.forwardOf(op);
    const auto section = sections_.find(op);
    json_ +=
        fmt::format("[{},{},{},{},{},{},{},", op.index, scriptText(printCall(document_, op)),
                    section == sections_.end() ? texts_.number("") : section->second, texts_.number(facts_.module(op)),
                    texts_.number(line(op)), texts_.number(facts_.role(op)), origin ? origin.index : -1);
    numbers(document_.operands(op));
    json_ += ",";
    numbers(document_.outputs(op));
    json_ += "]";
  }

  void numbers(std::span<const ValueId> values) {
    json_ += "[";
    bool isFirst = true;
    for (const auto value : values) {
      if (!value) continue;
      json_ += fmt::format("{}{}", isFirst ? "" : ",", number(value));
      isFirst = false;
    }
    json_ += "]";
  }

  std::size_t number(ValueId value) {
    const auto [at, isNew] = valueNumbers_.emplace(value, order_.size());
    if (isNew) order_.push_back(value);
    return at->second;
  }

  /// Name, type, kind, gradient or -1, whether it is saved; norm, mean, deviation, min, max, NaN, infinities where it
  /// was run.
  void value(ValueId id, std::size_t i) {
    if (i % 1024 == 0) progress_.check();
    const auto gradient = gradients_.contains(id) ? gradients_[id] : ValueId();
    json_ += fmt::format("{}[{},{},{},{},{}", i ? ",\n" : "", scriptText(document_.displayName(id)),
                         texts_.number(shortType(document_, id)), texts_.number(name(document_.value(id).kind)),
                         gradient && gradient != id ? static_cast<std::int64_t>(number(gradient)) : -1,
                         facts_.isSaved(id) ? 1 : 0);
    if (page_.values && page_.values->of(id).recorded) {
      const auto& s = page_.values->of(id).statistics;
      json_ += fmt::format(",\"{}\",\"{}\",\"{}\",\"{}\",\"{}\",{},{}", numberText(s.norm), numberText(s.mean),
                           numberText(s.standardDeviation), numberText(s.min), numberText(s.max), s.nan, s.inf);
    }
    json_ += "]";
  }

  std::string line(BoundSymbolId op) const {
    const auto* frame = shownFrame(sourceOf(document_, op));
    if (!frame) return {};
    return fmt::format("{}:{}{}{}", frame->file, frame->line, frame->code.empty() ? "" : ": ", frame->code);
  }

  const Page& page_;
  const Analysis& analysis_;
  const Document& document_;
  OpFacts facts_;
  IdVector<ValueId, ValueId> gradients_;
  const Progress& progress_;
  Texts texts_;
  std::map<BoundSymbolId, std::size_t> sections_;
  std::map<ValueId, std::size_t> valueNumbers_;
  std::vector<ValueId> order_;
  std::string json_;
};

/// Of a recorded step: what made the loss, the loop's own code included.
bool isForward(Phase phase) { return phase == Phase::forward || phase == Phase::loss || phase == Phase::other; }

std::string pane(std::string_view id, const std::string& title, std::size_t count) {
  return fmt::format(
      "<div class=\"pane\"><h3 id=\"{0}-title\">{1} <span class=\"count\">{2} ops</span></h3>\n"
      "<div class=\"listing\" id=\"{0}\" tabindex=\"0\" role=\"listbox\" aria-labelledby=\"{0}-title\"><div "
      "class=\"rows\" role=\"presentation\"></div></div></div>\n",
      id, htmlText(title), count);
}

}  // namespace

PageListings listingsOf(const Analysis& analysis) {
  if (!analysis.derived()) return {analysis.computation().trace.ops, {}, "Computation", "Backward"};
  if (!analysis.file.recording)
    return {analysis.forward.ops.empty() ? analysis.computation().trace.ops : analysis.forward.ops,
            analysis.backward.ops, "Forward", "Backward"};
  PageListings listings{{}, {}, "Forward", "Backward and update"};
  for (const auto op : analysis.joint.ops)
    (isForward(analysis.file.recording->op(op).phase) ? listings.left : listings.right).push_back(op);
  return listings;
}

BoundSymbolId shownOp(const Analysis& analysis, BoundSymbolId op) {
  const auto& document = *analysis.document;
  if (!op || !document.contains(op)) return {};
  if (!analysis.derived() || analysis.file.recording || document.boundSymbol(op).origin.role != Role::none) return op;
  for (const auto derived : analysis.links.derived(op))
    if (document.boundSymbol(derived).origin.role == Role::forward) return derived;
  return op;
}

std::string listingSection(const Page& page) {
  const auto listings = listingsOf(*page.analysis);
  return fmt::format(
      "<section aria-labelledby=\"listings\">\n<h2 id=\"listings\">Listings</h2>\n"
      "<noscript><p class=\"notes\">The listings need scripts, which are switched off here.</p></noscript>\n"
      "<div class=\"bar\" role=\"search\"><label for=\"find\">Find</label><input id=\"find\" type=\"search\" "
      "placeholder=\"op, value, module or line\" spellcheck=\"false\" autocomplete=\"off\">"
      "<button id=\"next\" type=\"button\">Next</button><button id=\"origin\" type=\"button\">Origin</button>"
      "<button id=\"back\" type=\"button\">Back</button>"
      "<span id=\"found\" class=\"faint\" role=\"status\"></span>"
      "<span class=\"keys faint\"><kbd>\u2191</kbd> <kbd>\u2193</kbd> move, <kbd>G</kbd> origin, <kbd>B</kbd> "
      "back, <kbd>/</kbd> find</span></div>\n<div class=\"panes\">\n{}{}</div>\n"
      "<div id=\"details\" class=\"details\" aria-live=\"polite\"><p class=\"faint\">Choose an op: here is what "
      "it reads and makes, where it comes from, and its line of Python.</p></div>\n</section>\n",
      pane("left", listings.leftTitle, listings.left.size()),
      pane("right", listings.rightTitle, listings.right.size()));
}

std::string listingData(const Page& page, const Progress& progress) { return ListingData(page, progress).text(); }

}  // namespace retrograd
