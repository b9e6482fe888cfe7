package ingot.train;

import ingot.nn.Gpt;

/// What a run has before its first step.
///
/// @param steps of the whole run
record Prepared(RunText text, Gpt model, Task task, Recipe recipe, RunIdentity identity, long steps) {}
