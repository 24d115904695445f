#include "views/models/modules_model.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/derivation/gradient_of.h"
#include "core/questions/memory_timeline.h"
#include "views/models/table_model.h"
#include "views/session/selection.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

int partNamed(ModulesModel::Modules& modules, int parent, const QString& name) {
  const auto path = parent < 0 ? name : modules.all[parent].path + QLatin1Char('.') + name;
  const auto found = modules.byPath.constFind(path);
  if (found != modules.byPath.constEnd()) return *found;
  const int added = modules.add(parent, {.name = name, .path = path});
  modules.byPath.insert(path, added);
  return added;
}

/// The module of the path, or the one around it that has ops; -1 where there is none.
int moduleAround(const ModulesModel::Modules& modules, QString path) {
  for (;;) {
    const auto found = modules.byPath.constFind(path);
    if (found != modules.byPath.constEnd()) return *found;
    const auto dot = path.lastIndexOf(QLatin1Char('.'));
    if (dot < 0) return -1;
    path.truncate(dot);
  }
}

void addGradients(ModulesModel::Modules& modules, const Analysis& analysis) {
  const auto gradients = gradientsOfInputs(analysis);
  const auto& inputs = analysis.computation().inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].kind == InputKind::parameter && gradients[i])
      if (const int module = moduleAround(modules, toQt(inputs[i].target)); module >= 0)
        modules.gradients.emplace_back(gradients[i], module);
}

void addMemory(ModulesModel::Modules& modules, const Analysis& analysis) {
  if (!analysis.derived()) return;
  const auto timeline = memoryTimeline(analysis);
  for (const auto& [path, bytes] : bytesByModule(analysis, timeline, timeline.peakPosition))
    for (int at = moduleAround(modules, toQt(path)); at >= 0; at = modules.all[at].parent)
      modules.all[at].memory += bytes;
}

/// By ModulesModel::Column.
constexpr auto moduleColumns = std::to_array<TableColumn>({
    {"Module"},
    {"Time", "Time of its ops in the present run, forward and backward"},
    {"Memory", "What its ops made and still hold when the memory of the run is at its peak"},
    {"Saved", "What its ops save for the backward"},
    {"Grad", "L2 norm of the gradients of its parameters"},
    {"Update", "What the last update of the optimizer added to its parameters: norm over their norm"},
    {"NaN", "NaN and Inf in what its ops made"},
    {"Ops", "Ops, forward and backward"},
});
static_assert(moduleColumns.size() == ModulesModel::columns);

}  // namespace

ModulesModel::Modules ModulesModel::modulesOf(const OpenDocument& open) {
  const auto& document = *open.analysis->document;
  Modules modules;
  std::unordered_map<StringId, int> known;
  const auto moduleOf = [&](StringId module) {
    const auto [found, isNew] = known.try_emplace(module, -1);
    if (isNew && module)
      for (const auto& part : toQt(document.text(module)).split(QLatin1Char('.')))
        found->second = partNamed(modules, found->second, part);
    return found->second;
  };
  const auto visit = [&](BoundSymbolId op, bool derived) {
    const auto& bound = document.boundSymbol(op);
    const int own = moduleOf(bound.module);
    if (derived && own >= 0) modules.ops.emplace_back(op, own);
    std::int64_t bytes = 0;
    if (derived)
      for (const auto output : document.outputs(op)) bytes += output ? open.saved.costOf(output) : 0;
    for (int at = own; at >= 0; at = modules.all[at].parent) {
      auto& module = modules.all[at];
      module.saved += bytes;
      if (derived) ++(isBackwardRole(bound.origin.role) ? module.backward : module.forward);
      else if (!module.first) module.first = op;
    }
  };
  for (auto op : open.trace(TraceKind::computation).lines) visit(op, false);
  for (auto op : open.analysis->forward.ops) visit(op, true);
  for (auto op : open.analysis->backward.ops) visit(op, true);
  addGradients(modules, *open.analysis);
  addMemory(modules, *open.analysis);
  return modules;
}

void ModulesModel::show(Modules modules) {
  beginResetModel();
  modules_ = std::move(modules);
  findMost({time, memory, saved, gradient, update, bad, ops});
  endResetModel();
}

void ModulesModel::findMost(std::initializer_list<int> among) {
  for (const int column : among) {
    auto& most = most_[column] = 0;
    for (const auto& module : modules_.all)
      if (const auto number = numberOf(module, column); number && std::isfinite(*number))
        most = std::max(most, *number);
  }
}

void ModulesModel::measure(const RunNumbers& numbers) {
  for (auto& module : modules_.all) module.seconds = module.gradientNorm = module.badElements = std::nullopt;
  const auto add = [this](int at, std::optional<double> Module::* sum, double number) {
    auto& all = modules_.all[at].*sum;
    all = all.value_or(0) + number;
  };
  const auto& badOps = numbers.badOps();
  for (const auto& [op, module] : modules_.ops)
    if (const auto seconds = numbers.number(OpFigure::time, op)) {
      add(module, &Module::seconds, *seconds);
      if (!badOps.empty() && badOps.contains(op))
        add(module, &Module::badElements, numbers.number(OpFigure::bad, op).value_or(0));
    }
  for (const auto& [value, module] : modules_.gradients)  // squares, which add up
    if (const auto* s = numbers.statistics(value)) add(module, &Module::gradientNorm, s->norm * s->norm);
  for (int at = static_cast<int>(modules_.all.size()) - 1; at >= 0; --at) {
    const auto& module = modules_.all[at];
    for (auto sum : {&Module::seconds, &Module::gradientNorm, &Module::badElements})
      if (module.parent >= 0 && module.*sum) add(module.parent, sum, *(module.*sum));
  }
  for (auto& module : modules_.all)
    if (module.gradientNorm) module.gradientNorm = std::sqrt(*module.gradientNorm);
  findMost({time, gradient, bad});
}

void ModulesModel::setUpdates(const std::map<std::string, UpdateNumbers>& updates) {
  struct Norms {
    double added = 0, weight = 0;
    bool isKnown = false;
  };
  std::vector<Norms> norms(modules_.all.size());
  for (const auto& [parameter, numbers] : updates)
    for (int at = moduleAround(modules_, toQt(parameter)); at >= 0 && numbers.norm; at = modules_.all[at].parent) {
      auto& of = norms[at];
      of.isKnown = true;
      of.added = std::hypot(of.added, *numbers.norm);
      if (numbers.ratio.value_or(0) > 0) of.weight = std::hypot(of.weight, *numbers.norm / *numbers.ratio);
    }
  for (std::size_t i = 0; i < norms.size(); ++i) {
    auto& shown = modules_.all[i].update = std::nullopt;
    if (!norms[i].isKnown) continue;
    if (!std::isfinite(norms[i].added)) shown = norms[i].added;
    else if (norms[i].added == 0) shown = 0;
    else if (norms[i].weight > 0) shown = norms[i].added / norms[i].weight;
  }
  findMost({update});
}

std::optional<double> ModulesModel::numberOf(const Module& module, int column) const {
  switch (column) {
    case time: return module.seconds;
    case memory: return static_cast<double>(module.memory);
    case saved: return static_cast<double>(module.saved);
    case gradient: return module.gradientNorm;
    case update: return module.update;
    case bad: return module.seconds ? module.badElements.value_or(0) : module.badElements;
    case ops: return static_cast<double>(module.forward + module.backward);
    default: return std::nullopt;
  }
}

QString ModulesModel::textOf(const Module& module, int column) const {
  const auto number = numberOf(module, column);
  switch (column) {
    case name: return module.name;
    case time: return number ? secondsText(*number) : QString();
    case memory:
    case saved: return number.value_or(0) > 0 ? bytesText(static_cast<std::int64_t>(*number)) : QString();
    case gradient:
    case update: return number ? briefNumber(*number) : QString();
    case bad: return number.value_or(0) > 0 ? numberText(OpFigure::bad, number) : QString();
    default: return QString::number(static_cast<qint64>(number.value_or(0)));
  }
}

QModelIndex ModulesModel::find(const QString& path) const {
  const auto found = modules_.byPath.constFind(path);
  return found == modules_.byPath.constEnd() ? QModelIndex() : indexOf(*found);
}

bool ModulesModel::hasFourDigits(Column column) const {
  return std::ranges::any_of(modules_.all, [&](const Module& module) {
    auto amount = numberOf(module, column).value_or(0);
    while (amount >= 1024) amount /= 1024;
    return amount >= 999.5;
  });
}

QStringList ModulesModel::widest(Column column) const {
  switch (column) {
    case time: return {QStringLiteral("00.0 ms")};
    case memory:
    case saved: return {hasFourDigits(column) ? QStringLiteral("0000 KiB") : QStringLiteral("000 KiB")};
    case gradient:
    case update: return {QStringLiteral("0.0000"), QStringLiteral("0.0e-0")};
    case bad: return {numberText(OpFigure::bad, most_[bad])};
    default: return {QString::number(static_cast<qint64>(most_[column]))};
  }
}

QVariant ModulesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& module = modules_.all[rowOf(index)];
  const int column = index.column();
  switch (role) {
    case Qt::DisplayRole: return textOf(module, column);
    case Qt::TextAlignmentRole:
      return QVariant(column == name ? Qt::AlignLeft | Qt::AlignVCenter : Qt::AlignRight | Qt::AlignVCenter);
    case Qt::ToolTipRole: {
      QStringList lines{
          tr("%1: %2 forward ops, %3 backward ops").arg(module.path).arg(module.forward).arg(module.backward)};
      for (int one : {time, memory, saved, gradient, update, bad})
        if (const auto text = textOf(module, one); !text.isEmpty())
          lines << QStringLiteral("%1: %2").arg(tr(moduleColumns[one].tip), text);
      return lines.join(QLatin1Char('\n'));
    }
    case moduleRole: return module.path;
    case sortRole: return column == name ? QVariant() : QVariant(numberOf(module, column).value_or(qQNaN()));
    case shareRole: {
      const auto number = numberOf(module, column);
      const auto most = most_[column];
      if (!number || column == name || column == ops || *number <= 0) return {};
      return !std::isfinite(*number) ? 1.0 : most > 0 ? *number / most : 0.0;
    }
    case opRole: return module.first.index;
    default: return {};
  }
}

QVariant ModulesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role == Qt::TextAlignmentRole && orientation == Qt::Horizontal && section > name && section < columns)
    return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  return headerOf(moduleColumns, section, orientation, role);
}

}  // namespace retrograd::views
