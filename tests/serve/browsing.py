"""A browser without a browser: cookies, forms with all their hidden fields, redirects that are followed."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from asked import Answer, ask

_FORM = "application/x-www-form-urlencoded"


class Browser:
    """One person's browser on an application. `seen` is all that went over the wire besides bodies and pages."""

    def __init__(self, app: Any) -> None:
        self.app, self.cookies, self.seen = app, dict[str, str](), list[str]()
        self.answer, self.page, self.forms = Answer(0, {}, b""), "", list[Form]()

    def get(self, address: str) -> str:
        """The page of an address."""
        return self._went(ask(self.app, "GET", address, cookie=self._jar(), accept="text/html"), address)

    def send(self, action: str, **fields: Any) -> str:
        """Send the form of this page that goes to an address, with its hidden fields; then the page that follows."""
        form = next(f for f in self.forms if f.action == action and set(fields) <= f.names)
        return self.post(action, [*form.hidden.items(), *fields.items()])

    def post(self, action: str, fields: list[tuple[str, Any]]) -> str:
        body = urlencode(fields, doseq=True).encode()
        return self._went(ask(self.app, "POST", action, pieces=[body], content_type=_FORM, cookie=self._jar()), action)

    def field(self, name: str) -> str:
        """The value of a hidden field of this page."""
        return next(f.hidden[name] for f in self.forms if name in f.hidden)

    def _jar(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def _went(self, answer: Answer, address: str) -> str:
        self.answer = answer
        self.seen += [address, *(f"{name}: {value}" for name, value in answer.headers.items())]
        for each in answer.cookies:
            name, _, rest = each.partition("=")
            value = rest.partition(";")[0].strip('"')
            self.cookies[name] = value
            if not value or "max-age=0" in each.lower():
                del self.cookies[name]
        if answer.status == 303:
            return self.get(answer.headers["location"])
        self.page = answer.body.decode("utf-8", "replace")
        reader = _Reader()
        if answer.headers.get("content-type", "").startswith("text/html"):
            reader.feed(self.page)
        self.forms = reader.forms
        return self.page


class Form:
    def __init__(self, action: str) -> None:
        self.action, self.hidden, self.names = action, dict[str, str](), set[str]()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(given["action"]))
        elif "name" in given and self.forms and tag != "meta":
            self.forms[-1].names.add(given["name"])
            if given.get("type") == "hidden":
                self.forms[-1].hidden[given["name"]] = given.get("value", "")
