/// Benchmarks: JMH micro-benchmarks and side-by-side runs.
module ingot.bench {
    requires transitive ingot.ir;
    requires ingot.nn;
    requires ingot.autodiff;
    requires ingot.compiler;
    requires ingot.cpu;
    requires ingot.store;
    requires ingot.runtime;
    requires ingot.data;
    requires ingot.train;
    requires static jdk.incubator.vector;
    requires jmh.core;
    requires static transitive org.jspecify;

    exports ingot.bench;
}
