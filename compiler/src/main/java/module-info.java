/// Passes, kernel IR and scheduling: Graph to Program; the Backend contract.
module ingot.compiler {
    requires transitive ingot.ir;
    requires ingot.autodiff;
    requires static transitive org.jspecify;

    exports ingot.compiler;
}
