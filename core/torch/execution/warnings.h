#pragma once
#include <string_view>

namespace retrograd {

/// From here on LibTorch's warnings that contain `text` are not printed where this thread causes them; what its
/// autograd engine's threads warn of comes from the thread that waits for them. `text` must live as long as the
/// program.
void ignoreWarnings(std::string_view text);

}  // namespace retrograd
