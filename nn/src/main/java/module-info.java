/// Functions, layers and model architectures: all of them build graphs.
module ingot.nn {
    requires transitive ingot.ir;
    requires static transitive org.jspecify;

    exports ingot.nn;
}
