#include "views/parts/history_memory.h"

#include <QFormLayout>
#include <QLineEdit>
#include <QRegularExpression>
#include <QVBoxLayout>
#include <cmath>
#include <limits>

#include "views/settings/settings.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/item_view.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

const WindowPart historyMemoryPart(PartOrder::historyMemory, [](MainWindow& window) {
  auto* settings = window.shared().settings;
  const auto context = window.context();
  context.controller->run().setHistoryBytes(HistoryMemoryDialog::kept(*settings));
  auto* action =
      window.actions().add("history-memory", tr("Memory &for Stepping Back..."),
                           tr("Sets how much may be kept for stepping back; with less, some ops run again"), {});
  QObject::connect(action, &QAction::triggered, &window, [&window, context, settings] {
    auto* dialog = new HistoryMemoryDialog(context, settings, &window);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->open();
  });
  window.menu("run")->addAction(action);
});

}  // namespace

std::optional<std::int64_t> bytesFromText(const QString& text) {
  static const QRegularExpression form(QStringLiteral("^\\s*([0-9]+(?:\\.[0-9]+)?)\\s*([KMGT]i?)?B?\\s*$"),
                                       QRegularExpression::CaseInsensitiveOption);
  const auto match = form.match(text);
  if (!match.hasMatch()) return std::nullopt;
  const auto unit = match.captured(2).left(1).toUpper();
  const auto power = unit.isEmpty() ? 0 : QStringLiteral("KMGT").indexOf(unit) + 1;
  constexpr auto most = std::numeric_limits<std::int64_t>::max() / 2;
  bool isWhole = false;
  if (const auto whole = match.captured(1).toLongLong(&isWhole); isWhole)  // not by way of a double, which has 53 bits
    return whole <= (most >> (10 * power)) ? std::optional(static_cast<std::int64_t>(whole) << (10 * power))
                                           : std::nullopt;
  const auto bytes = std::ldexp(QLocale::c().toDouble(match.captured(1)), static_cast<int>(10 * power));
  if (bytes > static_cast<double>(most)) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

HistoryMemoryDialog::HistoryMemoryDialog(ViewContext context, QSettings* settings, QWidget* parent)
    : QDialog(parent),
      context_(context),
      settings_(settings),
      amount_(new QComboBox(this)),
      used_(textLabel({}, this)),
      problem_(textLabel({}, this)) {
  setObjectName(QStringLiteral("history-memory"));
  setWindowTitle(tr("Memory for Stepping Back"));
  amount_->setObjectName(QStringLiteral("history-amount"));
  prepareBox(amount_, tr("Memory that stepping back may take"));
  amount_->setEditable(true);
  amount_->setInsertPolicy(QComboBox::NoInsert);
  for (const auto bytes : {std::int64_t{64} << 20, std::int64_t{256} << 20, std::int64_t{1} << 30,
                           std::int64_t{4} << 30, std::int64_t{16} << 30})
    amount_->addItem(bytesText(bytes));
  amount_->setEditText(bytesText(kept(*settings)));
  used_->setObjectName(QStringLiteral("history-used"));
  problem_->setObjectName(QStringLiteral("history-problem"));
  auto* what = textLabel(tr("Stepping back restores every value bit for bit. The undo data is limited to this amount, "
                            "on top of what the run itself "
                            "holds; beyond it, some ops run again on the way back."),
                         this);
  auto* form = new QFormLayout;
  form->addRow(tr("&At most"), amount_);
  form->addRow(tr("In use"), used_);
  auto* buttons = dialogButtons(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, this);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(what);
  layout->addLayout(form);
  layout->addWidget(problem_);
  layout->addStretch(1);
  layout->addWidget(buttons);
  resize(fontMetrics().averageCharWidth() * 72, sizeHint().height());
  connect(context_.execution, &ExecutionState::changed, this, &HistoryMemoryDialog::askWhatIsUsed);
  askWhatIsUsed();
  amount_->lineEdit()->selectAll();
  amount_->setFocus();
}

std::int64_t HistoryMemoryDialog::kept(const QSettings& settings) {
  const auto bytes = kept::historyBytes.of(settings, static_cast<qlonglong>(SessionOptions().historyBytes));
  return bytes >= 0 ? bytes : SessionOptions().historyBytes;
}

void HistoryMemoryDialog::accept() {
  const auto bytes = bytesFromText(amount_->currentText());
  if (!bytes)
    return problem_->setText(QStringLiteral("! ") +
                             tr("'%1' is not an amount of memory; write 512 MiB or 1 GiB").arg(amount_->currentText()));
  kept::historyBytes.keep(*settings_, static_cast<qlonglong>(*bytes));
  context_.controller->run().setHistoryBytes(*bytes);
  QDialog::accept();
}

void HistoryMemoryDialog::askWhatIsUsed() {
  if (!context_.controller->document()) return used_->setText(tr("nothing: no file is open"));
  if (used_->text().isEmpty()) used_->setText(tr("..."));
  const auto question = [this](const QuestionContext& context, const Progress&) -> Worker::Deliver {
    if (!context.runner) return [this] { used_->setText(tr("nothing: the file cannot be run")); };
    return [this, state = context.runner->history(), position = context.runner->position()] {
      auto text = tr("%1 for %2").arg(bytesText(state.bytes), opsText(position));
      if (position > 0)
        text += state.reruns > 0 ? tr("; a step back runs at most %1 again").arg(opsText(state.reruns))
                                 : tr("; a step back runs nothing again");
      used_->setText(text);
    };
  };
  context_.controller->questions().ask(this, QStringLiteral("history in use"), {}, question);
}

}  // namespace retrograd::views
