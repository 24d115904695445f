#pragma once
#include <QObject>

#include "views/window/main_window.h"

namespace retrograd::views {

class NotesDock;

/// Commands that make, change and walk the notes of the open document, and what the window says when they cannot be
/// saved.
class NoteCommands : public QObject {
  Q_OBJECT

 public:
  explicit NoteCommands(MainWindow& window);

 protected:
  /// Closing the window asks where notes would be lost.
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  /// What a comment or a bookmark is for: the selected op, or the value where only that is selected.
  struct Place {
    BoundSymbolId op;
    ValueId value;
  };
  Place place() const;
  /// What a name is for: the selected value, or the first that the selected op makes.
  ValueId namedValue() const;
  QString textOf(BoundSymbolId op, ValueId value) const;
  QString noPlace() const;

  void comment();
  void rename();
  void toggleBookmark();
  void step(bool forward);
  void editNote(std::size_t index, bool isName);
  void ask(bool isName, const QString& what, const QString& text, std::function<void(const std::string&)> chosen);
  void addCommands(NotesDock* dock);

  MainWindow& window_;
  ViewContext context_;
  bool discards_ = false;  ///< the person said to close without the notes that could not be saved
};

}  // namespace retrograd::views
