package ingot.train;

/// What streaming has done and what it has cost so far.
///
/// @param readStall seconds the computation has waited for reads and updates
/// @param writeStall seconds it has waited because memory was still being written to disk
/// @param commitStall seconds between the end of a step and its commit
public record StreamReport(long readBytes, long writtenBytes, double readStall, double writeStall, double commitStall) {
    /// Nothing streams.
    static final StreamReport NONE = new StreamReport(0, 0, 0, 0, 0);

    /// What has happened since `before`.
    public StreamReport minus(StreamReport before) {
        return new StreamReport(
                readBytes - before.readBytes,
                writtenBytes - before.writtenBytes,
                readStall - before.readStall,
                writeStall - before.writeStall,
                commitStall - before.commitStall);
    }
}
