// The unit that the precompiled header of all folders that see ATen belongs to.
