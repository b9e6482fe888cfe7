/// Weight stores, safetensors, checksums, generations.
module ingot.store {
    requires transitive ingot.ir;
    requires jdk.unsupported; // direct access to files
    requires tools.jackson.databind;
    requires static transitive org.jspecify;

    exports ingot.store;
}
