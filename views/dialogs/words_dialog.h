#pragma once
class QWidget;

namespace retrograd::views {

/// Help > Words: the glossary in a dialog, to look a word up without leaving the window.
void showWords(QWidget* parent);

}  // namespace retrograd::views
