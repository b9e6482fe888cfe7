/// Benchmarks: side-by-side runs and figures against the machine's own peaks.
module ingot.bench {
    requires transitive ingot.ir;
    requires ingot.autodiff;
    requires ingot.nn;
    requires ingot.compiler;
    requires ingot.cpu;
    requires ingot.store;
    requires ingot.runtime;
    requires ingot.data;
    requires ingot.formats;
    requires ingot.train;
    requires info.picocli;
    requires static transitive org.jspecify;

    exports ingot.bench;

    opens ingot.bench to
            info.picocli;
}
