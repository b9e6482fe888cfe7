/// Model, Estimator, optimizers, schedules, callbacks, run directory.
module ingot.train {
    requires transitive ingot.ir;
    requires ingot.nn;
    requires ingot.autodiff;
    requires ingot.compiler;
    requires ingot.cpu;
    requires ingot.store;
    requires ingot.formats;
    requires ingot.runtime;
    requires ingot.data;
    requires tools.jackson.databind;
    requires tools.jackson.dataformat.yaml;
    requires org.slf4j;
    requires static transitive org.jspecify;

    exports ingot.train;
}
