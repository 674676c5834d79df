package crawl;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Flags with a value each, then words. */
final class Arguments {
    private static final Set<String> NAMES = Set.of("-frontier", "-proxy", "-hosts", "-threads", "-agent",
            "-pause", "-hold", "-delay", "-block", "-limit");
    private final Map<String, List<String>> values = new HashMap<>();
    private final List<String> words = new ArrayList<>();

    Arguments(String[] args) {
        for (int i = 0; i < args.length; i++) {
            if (!args[i].startsWith("-")) {
                words.add(args[i]);
            } else if (!NAMES.contains(args[i]) || i + 1 == args.length) {
                throw new IllegalArgumentException("unknown flag, or one without a value: " + args[i]);
            } else {
                values.computeIfAbsent(args[i], k -> new ArrayList<>()).add(args[++i]);
            }
        }
        if (words.isEmpty()) {
            throw new IllegalArgumentException("no seeds");
        }
    }

    List<String> words() {
        return words;
    }

    String get(String name, String otherwise) {
        var all = values.get(name);
        return all == null ? otherwise : all.get(all.size() - 1);
    }

    String need(String name) {
        var value = get(name, null);
        if (value == null) {
            throw new IllegalArgumentException(name + " is missing");
        }
        return value;
    }

    int number(String name, int otherwise) {
        return Integer.parseInt(get(name, String.valueOf(otherwise)));
    }

    Map<String, Integer> pairs(String name) {
        var pairs = new LinkedHashMap<String, Integer>();
        for (var value : values.getOrDefault(name, List.of())) {
            int at = value.indexOf('=');
            if (at < 0) {
                throw new IllegalArgumentException(name + " needs HOST=NUMBER: " + value);
            }
            pairs.put(value.substring(0, at), Integer.parseInt(value.substring(at + 1)));
        }
        return pairs;
    }
}
