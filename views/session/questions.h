#pragma once
#include <QHash>
#include <QObject>
#include <QSet>
#include <functional>

#include "views/session/open_document.h"
#include "views/session/value_report.h"

namespace retrograd::views {

/// What a question about the open document may use; on the worker.
struct QuestionContext {
  const OpenDocument& document;
  Engine& engine;
  Runner* runner;  ///< null where the document cannot be run
};

/// Questions about the open document, answered on the worker. Answers are for the document that was asked about: where
/// another is open by then, they are dropped. Nothing here waits.
class Questions : public QObject {
  Q_OBJECT

 public:
  Questions(OpenState& state, QObject* parent);

  using Question = std::function<Worker::Deliver(const QuestionContext&, const Progress&)>;
  /// What `question` returns is called here, unless `asker` is gone. A newer question of the tag takes the place of an
  /// older one, running or not, of which nothing more is heard. With a title it shows in the status bar. `failed` hears
  /// why there is no answer; an empty text says that it was cancelled.
  void ask(QObject* asker, const QString& tag, const QString& title, Question question,
           std::function<void(const QString&)> failed = {});
  void cancel(const QString& tag) { state_.worker->cancel(state_.owner, tag); }
  /// Ends those with a title, and the one for values.
  void cancelAll();
  /// A question with a title is being answered or waits.
  bool asking() const;

  /// Values of an op's operands and outputs as they were at it, wherever execution is, answered by valuesReady(). A
  /// newer request replaces an older.
  void requestValues(const ValueRequest& request);
  void cancelValues();
  /// The last answer; null where none was given since the document was opened. May be of an earlier position.
  const std::shared_ptr<const ValueReport>& values() const { return values_; }
  /// Writes what a value held at the op to a .npy or .safetensors file, without an op what it holds when it is made;
  /// `done` gets the reason why not, or an empty text.
  void saveValue(ValueId value, const QString& path, std::function<void(const QString&)> done, BoundSymbolId op = {});
  /// Puts the number into every element of a value that is present; failed() says why where it is not.
  void fillValue(ValueId value, double number);
  /// The document goes.
  void forget() { values_.reset(); }

 Q_SIGNALS:
  void askingChanged();
  void valuesReady(const std::shared_ptr<const retrograd::views::ValueReport>& report);
  void valuesFailed(const QString& message);
  void failed(const QString& message);

 private:
  void post(QObject* asker, const QString& tag, const QString& title, Question question,
            std::function<void(const QString&)> failed);
  /// Counts a question of the tag; the result says, on this thread, whether that is still the newest one.
  std::function<bool()> newest(const QString& tag);

  OpenState& state_;
  std::shared_ptr<const ValueReport> values_;
  QSet<QString> titled_;                  ///< tags of questions with a title
  QHash<QString, std::uint64_t> newest_;  ///< number of the newest question, by tag
};

}  // namespace retrograd::views
