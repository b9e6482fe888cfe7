/// The executor: walks a Program; threads, memory budget, durability.
module ingot.runtime {
    requires transitive ingot.ir;
    requires ingot.compiler;
    requires ingot.store;
    requires static transitive org.jspecify;

    exports ingot.runtime;
}
