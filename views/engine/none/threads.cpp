#include "views/engine/threads.h"

namespace retrograd::views {

void useThreads(int) {}

}  // namespace retrograd::views
