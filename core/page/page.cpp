#include "core/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/derivation/gradient_of.h"
#include "core/page/html.h"
#include "core/page/sections.h"
#include "core/questions/op_facts.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

/// As many findings as a person reads; the others are counted.
constexpr std::size_t mostCards = 200;

struct VerdictLook {
  const char *style, *sign, *word;
};

VerdictLook lookOf(const Page& page) {
  if (!page.decision) return {"none", "i", "No verdict"};
  switch (page.decision->verdict) {
    case Verdict::pass: return {"pass", "\u2713", "Pass"};
    case Verdict::fail: return {"fail", "\u2717", "Fail"};
    case Verdict::notPossible: break;
  }
  return {"open", "?", "Not possible"};
}

std::string verdictBar(const Page& page) {
  const auto look = lookOf(page);
  std::string html = fmt::format(
      "<header class=\"verdict {}\">\n<p class=\"word\"><span class=\"sign\" aria-hidden=\"true\">{}</span>{}</p>\n"
      "<div class=\"subject\"><h1>{}</h1>\n",
      look.style, look.sign, look.word, htmlText(page.title));
  if (page.decision && !page.decision->reason.empty())
    html += fmt::format("<p class=\"reason\">{}</p>\n", htmlText(page.decision->reason));
  if (page.decision && page.decision->verdict == Verdict::pass)
    if (const auto open = std::ranges::find(page.report.claims, Severity::suspicion, &Claim::severity);
        open != page.report.claims.end())
      html += fmt::format("<p class=\"reason\">Look at this all the same: {}</p>\n", htmlText(textOf(*open)));
  html += "<dl class=\"facts\">";
  const auto fact = [&](std::string_view what, std::string_view value) {
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", htmlText(what), htmlText(value));
  };
  fact("Kind", page.kind);
  if (page.decision && !page.report.unit.empty()) fact("Compared", coverageText(page.report));
  for (const auto& [what, value] : page.facts) fact(what, value);
  return html + "</dl></div>\n</header>\n";
}

/// The numbers of what an op reads and makes, and of the gradients of that: what a person looks at next.
class Neighbours {
 public:
  explicit Neighbours(const Page& page) : page_(page), document_(*page.analysis->document) {}

  std::string table(BoundSymbolId op) {
    for (const auto operand : document_.operands(op)) row("reads", operand);
    for (const auto output : document_.outputs(op)) row("makes", output);
    for (const auto output : document_.outputs(op)) row("gradient", gradientOf(*page_.analysis, output));
    if (rows_.empty()) return {};
    return "<table class=\"numbers\"><thead><tr><th scope=\"col\">Value</th><th scope=\"col\"></th><th scope=\"col\">"
           "Type</th><th scope=\"col\">Norm</th><th scope=\"col\">Min</th><th scope=\"col\">Max</th><th scope=\"col\">"
           "NaN</th><th scope=\"col\">Inf</th></tr></thead><tbody>" +
           rows_ + "</tbody></table>\n";
  }

 private:
  void row(std::string_view what, ValueId value) {
    if (!value || !page_.values->of(value).recorded || !document_.isTensor(value)) return;
    const auto& record = page_.values->of(value);
    const auto& numbers = record.statistics;
    rows_ += fmt::format(
        "<tr{}><th scope=\"row\"><code>{}</code></th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td></tr>",
        record.bad() ? " class=\"bad\"" : "", htmlText(document_.displayName(value)), what,
        htmlText(shortType(document_, value)), numberText(numbers.norm), numberText(numbers.min),
        numberText(numbers.max), numbers.nan, numbers.inf);
  }

  const Page& page_;
  const Document& document_;
  std::string rows_;
};

/// "train.py:12 in step" and, where the trace has it, the line's text.
std::string lineOf(const Page& page, const Claim& claim) {
  auto html = claim.line.empty() ? std::string() : fmt::format("<span class=\"place\">{}</span>", htmlText(claim.line));
  if (!page.analysis || !claim.op) return html.empty() ? html : "<p class=\"line\">" + html + "</p>\n";
  const auto* frame = shownFrame(sourceOf(*page.analysis->document, claim.op));
  if (frame && html.empty())
    html = fmt::format("<span class=\"place\">{}:{}</span>", htmlText(frame->file), frame->line);
  if (frame && !frame->code.empty()) html += fmt::format(" <code>{}</code>", htmlText(frame->code));
  return html.empty() ? html : "<p class=\"line\">" + html + "</p>\n";
}

/// `shown`: ops whose numbers an earlier card has; those of this one are added.
std::string card(const Page& page, const Claim& claim, std::set<BoundSymbolId>& shown) {
  const auto title = claim.sentence.empty() ? claim.subject : claim.sentence;
  std::string html = fmt::format(
      "<li class=\"card {0}\">\n<p class=\"tag\">{0}<span> \u00b7 {1}</span></p>\n<h3>{2}</h3>\n", name(claim.severity),
      htmlText(claim.kind.empty() ? std::string(name(claim.by)) : claim.kind), htmlText(title));
  html += lineOf(page, claim);
  if (!claim.parameters.empty())
    html += fmt::format("<p class=\"behind\">Behind it: {}</p>\n", htmlText(namesText(claim.parameters)));
  if (!claim.remedy.empty())
    html += fmt::format("<p class=\"remedy\"><b>What to do</b> {}</p>\n", htmlText(claim.remedy));
  const auto op = page.analysis ? shownOp(*page.analysis, claim.op) : BoundSymbolId();
  if (op && page.values)
    if (const auto table = Neighbours(page).table(op); !table.empty())
      html += fmt::format("<details{}><summary>Its values and their neighbours</summary>\n<div class=\"scroll\">",
                          shown.insert(op).second ? " open" : "") +
              table + "</div></details>\n";
  if (op) html += fmt::format("<p><a class=\"show\" href=\"#op{}\">Show the op in the listing</a></p>\n", op.index);
  return html + "</li>\n";
}

std::string findings(const Page& page) {
  std::vector<const Claim*> claims;
  for (const auto severity : {Severity::fault, Severity::suspicion, Severity::note})
    for (const auto& claim : page.report.claims)
      if (claim.severity == severity) claims.push_back(&claim);
  std::string html = fmt::format(
      "<section aria-labelledby=\"findings\">\n<h2 id=\"findings\">Findings <span class=\"count\">{}</span></h2>\n",
      claims.size());
  if (claims.empty()) html += "<p class=\"faint\">Nothing was found that a person should look at.</p>\n";
  else html += "<ol class=\"cards\">\n";
  std::set<BoundSymbolId> shown;
  for (std::size_t i = 0; i < std::min(claims.size(), mostCards); ++i) html += card(page, *claims[i], shown);
  if (!claims.empty()) html += "</ol>\n";
  if (claims.size() > mostCards) html += fmt::format("<p>and {} more</p>\n", claims.size() - mostCards);
  std::string rest;
  for (const auto& one : page.report.notJudged)
    rest += fmt::format("<li><b>Not judged</b> {}{}{}</li>\n", htmlText(one.subject), one.subject.empty() ? "" : ": ",
                        htmlText(one.reason));
  for (const auto* notes : {&page.report.notes, &page.notes})
    for (const auto& note : *notes) rest += fmt::format("<li>{}</li>\n", htmlText(note));
  if (!rest.empty()) html += "<ul class=\"notes\">\n" + rest + "</ul>\n";
  return html + "</section>\n";
}

std::string tableSection(const PageTable& table, std::size_t number) {
  std::string html = fmt::format("<section aria-labelledby=\"table{0}\">\n<h2 id=\"table{0}\">{1}</h2>\n", number,
                                 htmlText(table.title));
  if (!table.note.empty()) html += fmt::format("<p class=\"faint\">{}</p>\n", htmlText(table.note));
  html += "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"" + htmlText(table.title) +
          "\"><table><thead><tr>";
  for (const auto& column : table.columns) html += fmt::format("<th scope=\"col\">{}</th>", htmlText(column));
  html += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      html += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", htmlText(row[i]))
                     : fmt::format("<td>{}</td>", htmlText(row[i]));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n</section>\n";
}

}  // namespace

std::string pageText(const Page& page, const Progress& progress) {
  auto html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src {}; script-src {}; "
      "base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n<title>{}: {}</title>\n<style>",
      allowedContent(pageStyle()), allowedContent(pageScript()), lookOf(page).word, htmlText(page.title));
  html += pageStyle();
  html += "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#findings\">To the findings</a>\n";
  html += verdictBar(page);
  html += "<main>\n" + findings(page);
  auto tables = page.tables;
  if (page.analysis) {
    html += timelineSection(page) + listingSection(page);
    for (auto& table : memoryTables(*page.analysis)) tables.push_back(std::move(table));
  }
  for (std::size_t i = 0; i < tables.size(); ++i) html += tableSection(tables[i], i);
  html += "</main>\n<footer>Made by Retrograd. This page loads nothing and sends nothing.</footer>\n";
  if (page.analysis) {
    html += "<script type=\"application/json\" id=\"data\">" + listingData(page, progress) + "</script>\n<script>";
    html += pageScript();
    html += "</script>\n";
  }
  return html + "</body>\n</html>\n";
}

}  // namespace retrograd
