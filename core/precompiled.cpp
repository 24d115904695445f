// The unit that the precompiled header of core's folders outside torch/ belongs to.
