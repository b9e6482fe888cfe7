/// The ingot command: the only place that wires everything together.
module ingot.cli {
    requires transitive ingot.ir;
    requires ingot.nn;
    requires ingot.compiler;
    requires ingot.cpu;
    requires ingot.data;
    requires ingot.formats;
    requires ingot.runtime;
    requires ingot.store;
    requires ingot.train;
    requires info.picocli;
    requires java.management;
    requires jdk.unsupported; // signals, direct file access
    requires org.slf4j;
    requires static transitive org.jspecify;

    opens ingot.cli to
            info.picocli;

    exports ingot.cli;
}
