#include "views/parts/keymap_model.h"

#include <QFont>
#include <array>

namespace retrograd::views {
namespace {

constexpr std::array<TableColumn, KeymapModel::columns> keymapColumns{
    {{"Command"}, {"Key"}, {"Set by"}, {"What it does"}}};

}  // namespace

KeymapModel::KeymapModel(Keymap& keymap, QList<KeyCommand> commands, QObject* parent)
    : TableModel(keymapColumns, parent),
      keymap_(keymap),
      commands_(std::move(commands)),
      bindings_(keymap_.resolve(commands_)) {
  connect(&keymap_, &Keymap::changed, this, &KeymapModel::follow);
}

void KeymapModel::follow() {
  bindings_ = keymap_.resolve(commands_);
  refreshRows();
}

QString KeymapModel::textOf(const QString& name) const {
  for (const auto& command : commands_)
    if (command.name == name) return command.text;
  return name;
}

const KeyCommand* KeymapModel::holder(const QKeySequence& key, const QString& besides) const {
  for (const auto& command : commands_)
    if (command.name != besides && !key.isEmpty() && bindings_.value(command.name).key == key) return &command;
  return nullptr;
}

QVariant KeymapModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& command = commands_[index.row()];
  const auto binding = bindings_.value(command.name);
  if (role == Qt::FontRole && binding.source == Keymap::Source::user && index.column() <= sourceColumn) {
    QFont font;
    font.setBold(true);
    return font;
  }
  if (role == Qt::ToolTipRole && !binding.lostTo.isEmpty())
    return tr("The key it would have is that of %1").arg(textOf(binding.lostTo));
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case commandColumn: return command.text;
    case keyColumn: return binding.key.toString(QKeySequence::NativeText);
    case sourceColumn:
      return binding.source == Keymap::Source::user     ? tr("you")
             : !binding.lostTo.isEmpty()                ? tr("taken: %1").arg(textOf(binding.lostTo))
             : binding.key.isEmpty()                    ? QString()
             : binding.source == Keymap::Source::preset ? tr("preset")
                                                        : tr("Retrograd");
    case whatColumn: return command.what;
    default: return {};
  }
}

void KeymapFilter::setWords(const QString& words) {
  words_ = words.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  invalidateFilter();
}

void KeymapFilter::setKey(const QKeySequence& key) {
  key_ = key;
  invalidateFilter();
}

bool KeymapFilter::filterAcceptsRow(int row, const QModelIndex&) const {
  const auto* model = static_cast<const KeymapModel*>(sourceModel());
  if (!key_.isEmpty() && model->binding(row).key != key_) return false;
  const auto& command = model->command(row);
  const auto text = command.text + QLatin1Char(' ') + model->binding(row).key.toString(QKeySequence::NativeText) +
                    QLatin1Char(' ') + command.what;
  return std::ranges::all_of(words_, [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); });
}

}  // namespace retrograd::views
