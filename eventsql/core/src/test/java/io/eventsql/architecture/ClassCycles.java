package io.eventsql.architecture;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Finds classes of one package that depend on each other, directly or through others of the package: the strongly
 * connected components, by Tarjan's algorithm. A nested class counts as part of its top-level class.
 */
public final class ClassCycles {
    private final Map<String, SortedSet<String>> dependencies;
    private final Map<String, Integer> index = new HashMap<>();
    private final Map<String, Integer> lowest = new HashMap<>();
    private final Deque<String> path = new ArrayDeque<>();
    private final List<SortedSet<String>> found = new ArrayList<>();

    private ClassCycles(Map<String, SortedSet<String>> dependencies) {
        this.dependencies = dependencies;
    }

    /** Returns the cycles of more than {@code classesMax} classes in all packages, largest first. */
    public static List<SortedSet<String>> largerThan(int classesMax, JavaClasses classes) {
        ClassCycles cycles = new ClassCycles(dependenciesWithinPackages(classes));
        for (String type : cycles.dependencies.keySet()) {
            if (!cycles.index.containsKey(type)) {
                cycles.visit(type);
            }
        }
        return cycles.found.stream()
                .filter(cycle -> cycle.size() > classesMax)
                .sorted(Comparator.comparingInt((SortedSet<String> cycle) -> cycle.size())
                        .reversed())
                .toList();
    }

    private static SortedMap<String, SortedSet<String>> dependenciesWithinPackages(JavaClasses classes) {
        SortedMap<String, SortedSet<String>> dependencies = new TreeMap<>();
        for (JavaClass type : classes) {
            SortedSet<String> targets = dependencies.computeIfAbsent(topLevelName(type), t -> new TreeSet<>());
            for (Dependency dependency : type.getDirectDependenciesFromSelf()) {
                JavaClass target = dependency.getTargetClass().getBaseComponentType();
                if (target.getPackageName().equals(type.getPackageName())) {
                    targets.add(topLevelName(target));
                }
            }
        }
        return dependencies;
    }

    private static String topLevelName(JavaClass type) {
        return type.getEnclosingClass().map(ClassCycles::topLevelName).orElse(type.getName());
    }

    private void visit(String type) {
        int number = index.size();
        index.put(type, number);
        lowest.put(type, number);
        path.push(type);
        for (String target : dependencies.getOrDefault(type, new TreeSet<>())) {
            if (!index.containsKey(target)) {
                visit(target);
                lowest.merge(type, lowest.getOrDefault(target, number), Math::min);
            } else if (path.contains(target)) {
                lowest.merge(type, index.getOrDefault(target, number), Math::min);
            }
        }
        if (lowest.getOrDefault(type, number) == number) {
            SortedSet<String> component = new TreeSet<>();
            String member;
            do {
                member = path.pop();
                component.add(member);
            } while (!member.equals(type));
            found.add(component);
        }
    }
}
