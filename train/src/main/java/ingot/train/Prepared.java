package ingot.train;

/// What a run has before its first step.
///
/// @param steps of the whole run
record Prepared(Lesson lesson, Task task, Recipe recipe, RunIdentity identity, long steps) {}
