"""Answers the questions of differ with parsers of other projects: a line of JSON for each line of JSON."""

import html
import json
import sys


def urls():
    from ada_url import URL

    def href(url, base=""):
        try:
            return URL(url, base or None).href
        except ValueError:
            return ""

    return lambda q: {"href": href(q["ref"], q["base"]), "alone": href(q["ref"]), "again": href(q["normal"])}


def pages():
    from selectolax.lexbor import LexborHTMLParser

    def read(q):
        elements, aside = [], ""
        for node in LexborHTMLParser(q["page"]).root.traverse():
            if node.tag in ("noframes", "template"):
                aside += node.html
            elif node.attributes:
                elements.append({"tag": node.tag, "in": node.parent.tag, "attributes": node.attributes})
        return {"elements": elements, "aside": aside + html.unescape(aside)}

    return read


def robots():
    from jwm.robotstxt.googlebot import RobotsMatcher

    allowed = RobotsMatcher().OneAgentAllowedByRobots
    return lambda q: {"written": allowed(q["robots"], q["agent"], q["url"]), "form": allowed(q["form"], q["agent"], q["form_url"])}


answer = {"urls": urls, "pages": pages, "robots": robots}[sys.argv[1]]()
for line in sys.stdin:
    sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
