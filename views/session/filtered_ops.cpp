#include "views/session/filtered_ops.h"

#include "views/text/format.h"
#include "views/text/line_text.h"

namespace retrograd::views {

PassingLines::PassingLines(const std::vector<bool>& passes) {
  before_.reserve(passes.size() + 1);
  for (const bool one : passes) before_.push_back(before_.back() + one);
}

std::shared_ptr<const FilteredOps> filterOps(std::shared_ptr<const OpenDocument> document, const Filter& filter,
                                             const Progress& progress) {
  auto result = std::make_shared<FilteredOps>();
  const auto& analysis = *document->analysis;
  const auto count = analysis.document->boundSymbolCount();
  FilterRun run(*analysis.document, filter, analysis.derived() ? &analysis.backward : nullptr);
  result->passes.assign(count, false);
  std::vector<bool> known(count, false);  // forward and backward share their ops with the joint
  for (const auto& index : document->traces) {
    std::vector<bool> passes;
    passes.reserve(index->lines.size());
    for (const auto op : index->lines) {
      const auto i = static_cast<std::size_t>(op.index);
      if ((passes.size() & 0xfff) == 0) progress.check();
      if (!known[i]) result->passes[i] = run.matches(op);
      known[i] = true;
      passes.push_back(result->passes[i]);
    }
    result->lines[index->kind] = PassingLines(passes);
  }
  result->document = std::move(document);
  return result;
}

QString sameOpWords(const Document& document, BoundSymbolId op) {
  return op ? QStringLiteral("op:") + toQt(filterWord(shortOpName(document, op).toStdString())) : QString();
}

QString sameModuleWords(const Document& document, BoundSymbolId op) {
  if (!op) return {};
  const auto& bound = document.boundSymbol(op);
  const auto module = bound.module || !bound.origin.op ? bound.module : document.boundSymbol(bound.origin.op).module;
  return document.text(module).empty() ? QString()
                                       : QStringLiteral("module:") + toQt(filterWord(document.text(module)));
}

QString sameOriginWords(const Document& document, BoundSymbolId op) {
  const auto origin = op ? OriginLinks::origin(document, op) : BoundSymbolId();
  if (!origin) return {};
  // The operation itself has no origin, but a name.
  const auto word = toQt(filterWord(operationName(document, origin).toStdString()));
  return QStringLiteral("origin:%1 or name:%1").arg(word);
}

}  // namespace retrograd::views
