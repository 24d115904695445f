#pragma once

/// Traces a module and prints its backward; 0 where that went well.
int traceNet();
