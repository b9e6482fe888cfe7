/// Random graphs, gradient check, golden files: support shared by the tests of the other modules.
module ingot.testkit {
    requires transitive ingot.ir;
    requires transitive org.assertj.core;
    requires transitive org.junit.jupiter.api;
    requires static transitive org.jspecify;

    exports ingot.testkit;
}
