/// Models of other systems: their files become graphs and weights, and the way back.
module ingot.formats {
    requires transitive ingot.ir;
    requires transitive ingot.nn;
    requires transitive ingot.store;
    requires ingot.data;
    requires tools.jackson.databind;
    requires io.jhdf;
    // What jhdf needs: an automatic module cannot say so itself.
    requires com.ning.compress.lzf;
    requires org.apache.commons.compress;
    requires org.apache.commons.lang3;
    requires org.slf4j;
    requires static transitive org.jspecify;

    exports ingot.formats;
}
