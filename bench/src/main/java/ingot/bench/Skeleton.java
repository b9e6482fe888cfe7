package ingot.bench;

/// Keeps the exported package non-empty until the first class arrives; delete it then.
interface Skeleton {}
