#include "views/jobs/job_graphs_window.h"

#include <QAction>
#include <QFrame>
#include <QHBoxLayout>
#include <QPlainTextDocumentLayout>
#include <QTextBlock>
#include <QVBoxLayout>

#include "views/text/format.h"

namespace retrograd::views {
namespace {

/// A text as a document of the UI thread. Made on any thread, as splitting a large one into lines takes its time.
std::shared_ptr<QTextDocument> documentOf(const QString& text, const QFont& font, QThread* thread) {
  auto document = std::make_shared<QTextDocument>();
  document->setUndoRedoEnabled(false);
  document->setDefaultFont(font);
  document->setPlainText(text);
  document->moveToThread(thread);
  return document;
}

}  // namespace

JobGraphsWindow::JobGraphsWindow(Theme* theme, std::shared_ptr<const jobs::JobLog> log, const jobs::Attempt& attempt, const QString& title, QWidget* parent)
    : QWidget(parent, Qt::Window), theme_(theme), log_(std::move(log)), title_(title), tabs_(new QTabWidget(this)) {
  setObjectName(QStringLiteral("job-graphs"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("%1 - The Job's Own Graphs").arg(title));
  tabs_->setObjectName(QStringLiteral("job-texts"));
  tabs_->setAccessibleName(tr("Graphs"));
  tabs_->setDocumentMode(true);
  for (const auto& graph : attempt.graphs) addPage(graph);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(tabs_, 1);
  layout->addWidget(makeFoot());
  resize(1200, 860);
  connect(tabs_, &QTabWidget::currentChanged, this, [this](int page) {
    if (page >= 0 && isVisible()) read(static_cast<std::size_t>(page));
    describe();
  });
  connect(theme_, &Theme::changed, this, &JobGraphsWindow::markLine);
  const auto addKey = [this](const QKeySequence& key, auto&& run) {
    auto* action = new QAction(this);
    action->setShortcut(key);
    connect(action, &QAction::triggered, this, run);
    addAction(action);
  };
  addKey(QKeySequence::Find, [this] {
    find_->setFocus();
    find_->selectAll();
  });
  addKey(Qt::Key_F3, [this] { find(false); });
  addKey(Qt::SHIFT | Qt::Key_F3, [this] { find(true); });
  addKey(Qt::CTRL | Qt::Key_W, [this] { close(); });
  addKey(Qt::Key_Escape, [this] {
    auto* page = current();
    page && find_->hasFocus() ? page->view->setFocus() : static_cast<void>(close());
  });
}

void JobGraphsWindow::addPage(const jobs::GraphRecord& graph) {
  auto name = toQt(std::string(jobs::name(graph.kind)));
  const auto before = std::count_if(pages_.begin(), pages_.end(), [&](const Page& page) { return page.graph.kind == graph.kind; });
  if (before > 0) name += QStringLiteral(" %1").arg(before + 1);  // after the forward's comes the backward's
  auto* view = new QPlainTextEdit(tabs_);
  view->setObjectName(QStringLiteral("job-text-") + name);
  view->setAccessibleName(name);
  view->setReadOnly(true);
  view->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  view->setFont(Theme::codeFont());
  view->setFrameShape(QFrame::NoFrame);
  view->setLineWrapMode(QPlainTextEdit::NoWrap);
  view->setTabChangesFocus(true);
  connect(view, &QPlainTextEdit::cursorPositionChanged, this, [this] {
    describe();
    markLine();
  });
  pages_.push_back({graph, view, new PoolJob(this)});
  tabs_->addTab(view, name);
  tabs_->setTabToolTip(tabs_->count() - 1, tr("Ops: %1").arg(graph.ops) + QLatin1Char('\n') + toQt(jobs::placeOf(*log_, graph.payload)));
}

QWidget* JobGraphsWindow::makeFoot() {
  auto* foot = new QWidget(this);
  line_ = new QLabel(foot);
  line_->setObjectName(QStringLiteral("job-line"));
  line_->setAccessibleName(tr("Where the cursor is"));
  line_->setTextFormat(Qt::PlainText);
  find_ = new QLineEdit(foot);
  find_->setObjectName(QStringLiteral("job-find"));
  find_->setAccessibleName(tr("Find in the graph"));
  find_->setPlaceholderText(tr("Find in the graph (%1); F3 goes to the next place").arg(QKeySequence(QKeySequence::Find).toString(QKeySequence::NativeText)));
  find_->setClearButtonEnabled(true);
  connect(find_, &QLineEdit::returnPressed, this, [this] { find(false); });
  auto* layout = new QHBoxLayout(foot);
  layout->setContentsMargins(8, 5, 8, 5);
  layout->setSpacing(12);
  layout->addWidget(find_, 2);
  layout->addWidget(line_, 3);
  return foot;
}

JobGraphsWindow::Page* JobGraphsWindow::current() {
  const auto index = tabs_->currentIndex();
  return index < 0 ? nullptr : &pages_[static_cast<std::size_t>(index)];
}

void JobGraphsWindow::show(jobs::GraphKind kind, int line) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < pages_.size(); ++i)
    if (pages_[i].graph.kind == kind) found = i;
  showGraph(found, line);
}

void JobGraphsWindow::showGraph(std::size_t graph, int line) {
  QWidget::show();
  raise();
  activateWindow();
  if (graph >= pages_.size()) return;
  tabs_->setCurrentIndex(static_cast<int>(graph));
  auto& page = pages_[graph];
  page.view->setFocus();
  page.line = line;
  page.read ? goTo(page, line) : read(graph);
}

void JobGraphsWindow::read(std::size_t index) {
  auto& page = pages_[index];
  if (std::exchange(page.asked, true)) return;
  describe();
  page.job->start([this, index, log = log_, payload = page.graph.payload, font = Theme::codeFont(), thread = thread()](const Progress&) -> PoolJob::Deliver {
    QString text;
    try {
      text = toQt(jobs::payloadText(*log, payload));
    } catch (const Error& e) {
      text = toQt(std::string(e.what()));
    }
    return [this, index, document = documentOf(text, font, thread)] {
      auto& shown = pages_[index];
      auto* layout = new QPlainTextDocumentLayout(document.get());
      document->setDocumentLayout(layout);
      shown.view->setDocument(document.get());
      connect(shown.view, &QObject::destroyed, this, [document] {});  // keeps it as long as the view
      shown.read = true;
      goTo(shown, shown.line);
    };
  });
}

void JobGraphsWindow::goTo(Page& page, int line) {
  if (line > 0) {
    page.view->setTextCursor(QTextCursor(page.view->document()->findBlockByNumber(line - 1)));
    page.view->centerCursor();
  }
  describe();
  markLine();
}

void JobGraphsWindow::describe() {
  const auto* page = current();
  if (!page) return line_->setText(tr("The log has no graph of this compile"));
  if (!page->read) return line_->setText(tr("Reading..."));
  auto text = tr("Line %1 of %2").arg(page->view->textCursor().blockNumber() + 1).arg(page->view->blockCount());
  text += QStringLiteral("  \u00b7  ") + tr("Ops: %1").arg(page->graph.ops);
  if (page->graph.damaged) text += QStringLiteral("  \u00b7  ") + tr("not whole: the text is not what was written");
  line_->setText(text);
}

void JobGraphsWindow::markLine() {
  const auto* page = current();
  if (!page || !page->read) return;
  QTextEdit::ExtraSelection mark;
  mark.format.setBackground(theme_->colors().selected);
  mark.format.setProperty(QTextFormat::FullWidthSelection, true);
  mark.cursor = page->view->textCursor();
  mark.cursor.clearSelection();
  page->view->setExtraSelections({mark});
}

void JobGraphsWindow::find(bool backward) {
  const auto* page = current();
  if (!page || !page->read) return;
  const auto text = find_->text();
  if (text.isEmpty()) return find_->setFocus();
  auto* view = page->view;
  const auto flags = backward ? QTextDocument::FindBackward : QTextDocument::FindFlags();
  if (view->find(text, flags)) return;
  const auto from = view->textCursor();
  view->moveCursor(backward ? QTextCursor::End : QTextCursor::Start);
  if (view->find(text, flags)) return line_->setText(line_->text() + QStringLiteral("  \u00b7  ") + tr("the search went on from the other end"));
  view->setTextCursor(from);
  line_->setText(tr("'%1' does not occur in this graph").arg(text));
}

}  // namespace retrograd::views
