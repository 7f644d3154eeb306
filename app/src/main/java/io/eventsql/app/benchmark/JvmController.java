package io.eventsql.app.benchmark;

import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** Serves the state of this JVM, from which runners recognise that it is warm. */
@RestController
@RequestMapping("/jvm")
final class JvmController {

    @GetMapping
    JvmState state() {
        return new JvmState(ManagementFactory.getRuntimeMXBean().getInputArguments(), compilationMs());
    }

    /** Returns 0 for a JVM without a compiler. */
    private static long compilationMs() {
        CompilationMXBean compilation = ManagementFactory.getCompilationMXBean();
        return compilation == null || !compilation.isCompilationTimeMonitoringSupported()
                ? 0
                : compilation.getTotalCompilationTime();
    }
}
