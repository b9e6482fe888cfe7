/// The ingot command: the only place that wires everything together.
module ingot.cli {
    requires transitive ingot.ir;
    requires ingot.nn;
    requires ingot.autodiff;
    requires ingot.compiler;
    requires ingot.cpu;
    requires ingot.store;
    requires ingot.runtime;
    requires ingot.data;
    requires ingot.train;
    requires info.picocli;
    requires me.tongfei.progressbar;
    requires tools.jackson.databind;
    requires tools.jackson.dataformat.yaml;
    requires org.slf4j;
    requires static transitive org.jspecify;

    exports ingot.cli;
}
