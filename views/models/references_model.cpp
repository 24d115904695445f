#include "views/models/references_model.h"

#include "views/text/format.h"

namespace retrograd::views {
namespace {

QString kindText(const ValueReference& reference) {
  auto text = toQt(name(reference.kind));
  if (!reference.argument.empty()) text += tr(", as %1").arg(toQt(reference.argument));
  return text;
}

QString whatText(const Document& document, const ValueReference& reference, const NoteBook* notes) {
  if (reference.op)
    return numberedCallOf(document, reference.op, notes) +
           (reference.trace == TraceKind::computation ? tr("   (computation)") : QString());
  if (reference.value) return nameOf(document, reference.value, notes) + tr(", an input");
  return reference.trace == TraceKind::computation ? tr("of the computation")
                                                   : tr("of the joint trace: an output or a gradient");
}

}  // namespace

void ReferencesModel::show(const std::shared_ptr<const OpenDocument>& document,
                           const std::vector<ValueReferences>& values, const NoteBook* notes) {
  auto root = std::make_unique<Node>();
  for (const auto& [value, references] : values) {
    const auto& d = *document->analysis->document;
    auto* section = root->add(fullNameOf(d, value, notes));
    section->value = value;
    section->op = d.value(value).producer;
    if (const auto meta = d.value(value).meta) section->text = typeText(d.meta(meta));
    section->text += references.size() == 1 ? tr("   1 place") : tr("   %1 places").arg(references.size());
    for (const auto& reference : references) {
      auto* row = section->add(kindText(reference), whatText(d, reference, notes));
      row->op = reference.op;
      row->value = reference.value ? reference.value : value;
      const auto module = reference.op ? d.text(d.boundSymbol(reference.op).module) : std::string_view();
      row->tip = row->text + (module.empty() ? QString() : tr("\nmodule %1").arg(toQt(module)));
    }
  }
  replace(std::move(root));
}

}  // namespace retrograd::views
