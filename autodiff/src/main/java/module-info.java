/// Gradients as graph nodes: one exhaustive switch over ops.
module ingot.autodiff {
    requires transitive ingot.ir;
    requires static transitive org.jspecify;

    exports ingot.autodiff;
}
