package crawl;

import crawlercommons.filters.basic.BasicURLNormalizer;
import crawlercommons.robots.SimpleRobotRules;
import crawlercommons.robots.SimpleRobotRules.RobotRulesMode;
import crawlercommons.robots.SimpleRobotRulesParser;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jsoup.Jsoup;
import org.jsoup.nodes.Element;

/** Fetches pages through a proxy and finds their links. It waits for nothing: the frontier does. */
final class Fetcher {
    private final HttpClient client;
    private final String agent;
    private final Duration pause;
    private final Map<String, SimpleRobotRules> robots = new ConcurrentHashMap<>();
    private final SimpleRobotRulesParser parser = new SimpleRobotRulesParser();
    private final BasicURLNormalizer normalizer = new BasicURLNormalizer();

    /** A pause lies between robots.txt and the first page of a host, as both belong to one lease. */
    Fetcher(InetSocketAddress proxy, String agent, Duration pause) {
        client = HttpClient.newBuilder()
                .proxy(ProxySelector.of(proxy))
                .version(HttpClient.Version.HTTP_1_1)
                .followRedirects(HttpClient.Redirect.NEVER)
                .connectTimeout(Duration.ofSeconds(10))
                .build();
        this.agent = agent;
        this.pause = pause;
    }

    /** What became of a URL: the status, or 0 if robots.txt forbids it, and the links of the page. */
    record Page(int status, Set<String> links) {}

    Page fetch(String url) throws IOException, InterruptedException {
        if (!rules(url).isAllowed(url)) {
            return new Page(0, Set.of());
        }
        var answer = get(url);
        var links = new LinkedHashSet<String>();
        int status = answer.statusCode();
        if (status >= 300 && status < 400) {
            answer.headers().firstValue("Location").ifPresent(to -> add(links, resolve(url, to)));
        } else if (status == 200 && type(answer).startsWith("text/html")) {
            links(url, answer, links);
        }
        return new Page(status, links);
    }

    private SimpleRobotRules rules(String url) throws IOException, InterruptedException {
        var root = URI.create(url).resolve("/robots.txt").toString();
        var known = robots.get(root);
        if (known != null) {
            return known;
        }
        var answer = get(root);
        Thread.sleep(pause.toMillis());
        SimpleRobotRules rules;
        if (answer.statusCode() == 200) {
            rules = parser.parseContent(root, answer.body(), "text/plain", List.of(agent.split("/")[0].toLowerCase()));
        } else {
            rules = new SimpleRobotRules(
                    answer.statusCode() >= 500 ? RobotRulesMode.ALLOW_NONE : RobotRulesMode.ALLOW_ALL);
        }
        robots.put(root, rules);
        return rules;
    }

    private HttpResponse<byte[]> get(String url) throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(url))
                .header("User-Agent", agent)
                .timeout(Duration.ofSeconds(30))
                .build();
        return client.send(request, HttpResponse.BodyHandlers.ofByteArray());
    }

    private static String type(HttpResponse<?> answer) {
        return answer.headers().firstValue("Content-Type").orElse("");
    }

    private void links(String url, HttpResponse<byte[]> answer, Set<String> links) throws IOException {
        var type = type(answer);
        int at = type.indexOf("charset=");
        var charset = at < 0 ? null : type.substring(at + "charset=".length());
        var page = Jsoup.parse(new ByteArrayInputStream(answer.body()), charset, url);
        for (Element e : page.select("a[href], area[href]")) {
            add(links, e.absUrl("href"));
        }
        for (Element e : page.select("frame[src], iframe[src]")) {
            add(links, e.absUrl("src"));
        }
        for (Element e : page.select("meta[http-equiv=refresh]")) {
            var content = e.attr("content");
            int to = content.toLowerCase().indexOf("url=");
            if (to >= 0) {
                add(links, resolve(url, content.substring(to + 4).trim().replaceAll("^['\"]|['\"]$", "")));
            }
        }
    }

    private static String resolve(String base, String reference) {
        try {
            return URI.create(base).resolve(reference).toString();
        } catch (IllegalArgumentException e) {
            return "";
        }
    }

    private void add(Set<String> links, String url) {
        var clean = url.startsWith("http") ? normalizer.filter(url) : null;
        if (clean == null || clean.isEmpty()) {
            return;
        }
        try {
            URI.create(clean);
            links.add(clean);
        } catch (IllegalArgumentException e) {
            System.err.println("not a URL: " + clean);
        }
    }
}
