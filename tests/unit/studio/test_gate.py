"""Who is admitted to the studio, and what is refused."""

from urllib.parse import urlencode, urlsplit

import pytest
from starlette.responses import PlainTextResponse
from studios import FORM, ORIGIN, ask

from dbanon.studio.gate import HEADERS, LONGEST_BODY, Access, Gate

CANARY = "row-value-4711"


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def access(clock):
    return Access(ORIGIN, clock=clock)


@pytest.fixture
def gate(access):
    async def app(scope, receive, send):
        if scope["path"].endswith("/enter"):
            cookie = access.admit(scope["query_string"].decode().partition("token=")[2])
            headers = {} if cookie is None else {"Set-Cookie": cookie}
            answer = PlainTextResponse("entered", 403 if cookie is None else 200, headers)
        elif scope["path"].endswith("/break"):
            raise ValueError(CANARY)
        else:
            form = scope.get("state", {}).get("form", {})
            answer = PlainTextResponse(f"inside {sorted(form)}")
        await answer(scope, receive, send)

    return Gate(
        app,
        access,
        refuse=lambda one: PlainTextResponse(one.reason, one.status),
        failed=lambda error: PlainTextResponse(type(error).__name__, 500),
    )


@pytest.fixture
def cookie(gate, access):
    address = urlsplit(access.address)
    path = f"{address.path}?{address.query}"
    answer = ask(gate, "GET", path, headers=[("Host", access.host)])
    return answer.headers["set-cookie"]


def own(access, cookie, *others):
    return [("Host", access.host), ("Cookie", cookie.partition(";")[0]), *others]


def post(gate, access, headers, **fields):
    sent = [*headers, ("Content-Type", FORM)]
    path = f"{access.base}/save"
    return ask(gate, "POST", path, headers=sent, body=urlencode(fields).encode())


def test_the_browser_that_has_the_address_is_admitted_and_its_forms_arrive(gate, access, cookie):
    assert "inside []" == ask(gate, "GET", f"{access.base}/", headers=own(access, cookie)).text
    headers = own(access, cookie, ("Origin", ORIGIN))
    answer = post(gate, access, headers, csrf=access.form, k="5")
    assert "inside ['csrf', 'k']" == answer.text


def test_the_cookie_is_out_of_reach_of_scripts_other_sites_and_other_ports(access, cookie):
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert f"Path={access.base}/;" in cookie
    assert len(access.base) > 20
    assert "Secure" not in cookie
    secure = Access("https://studio.example:443")
    assert "; Secure" in secure.admit(secure.token)


def test_cookies_of_other_ports_lock_nobody_out(gate, access, cookie):
    (host, (name, value)) = own(access, cookie)
    for foreign in ("dbanon_studio=x; ", 'bad cookie="; '):
        for sent in (foreign + value, f"{value}; {foreign}"):
            assert 200 == ask(gate, "GET", f"{access.base}/", headers=[host, (name, sent)]).status


def test_an_address_admits_once(gate, access):
    token = access.token
    path = f"{access.base}/enter?token={token}"
    assert 200 == ask(gate, "GET", path, headers=[("Host", access.host)]).status
    for tried in (token, "None", ""):
        path = f"{access.base}/enter?token={tried}"
        answer = ask(gate, "GET", path, headers=[("Host", access.host)])
        assert (403, False) == (answer.status, "set-cookie" in answer.headers)


def test_an_address_that_nobody_opened_expires(gate, access, clock):
    clock.now += 601
    address = urlsplit(access.address)
    path = f"{address.path}?{address.query}"
    answer = ask(gate, "GET", path, headers=[("Host", access.host)])
    assert (403, False) == (answer.status, "set-cookie" in answer.headers)


def test_an_idle_browser_has_to_be_admitted_again(gate, access, clock, cookie):
    clock.now += 8 * 3600 - 1
    assert 200 == ask(gate, "GET", f"{access.base}/", headers=own(access, cookie)).status
    clock.now += 8 * 3600 + 1
    answer = ask(gate, "GET", f"{access.base}/", headers=own(access, cookie))
    assert 403 == answer.status
    assert "not admitted" in answer.text


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost:8765", "evil.example:8765", "127.0.0.1:8766", "", None]
)
def test_a_name_that_was_bound_to_this_machine_is_refused(gate, access, cookie, host):
    named = [] if host is None else [("Host", host)]
    headers = [*named, *own(access, cookie)[1:]]
    answer = ask(gate, "GET", f"{access.base}/", headers=headers)
    assert 403 == answer.status
    assert "inside" not in answer.text
    twice = [("Host", "evil.example"), *own(access, cookie)]
    assert 403 == ask(gate, "GET", f"{access.base}/", headers=twice).status


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", None])
def test_a_form_of_another_site_or_port_is_refused(gate, access, cookie, origin):
    named = [] if origin is None else [("Origin", origin)]
    answer = post(gate, access, own(access, cookie, *named), csrf=access.form)
    assert 403 == answer.status
    assert "inside" not in answer.text


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_elsewhere_cannot_even_load_one(gate, access, cookie, site):
    headers = own(access, cookie, ("Sec-Fetch-Site", site))
    assert 403 == ask(gate, "GET", f"{access.base}/", headers=headers).status


@pytest.mark.parametrize("token", ["", "x", None])
def test_a_form_without_its_token_is_refused(gate, access, cookie, token):
    fields = {} if token is None else {"csrf": token}
    headers = own(access, cookie, ("Origin", ORIGIN))
    assert 403 == post(gate, access, headers, **fields).status


def test_a_form_in_another_format_is_refused(gate, access, cookie):
    headers = own(access, cookie, ("Origin", ORIGIN), ("Content-Type", "text/plain"))
    body = f"csrf={access.form}".encode()
    answer = ask(gate, "POST", f"{access.base}/save", headers=headers, body=body)
    assert 403 == answer.status


def test_a_form_that_is_too_long_is_refused(gate, access, cookie):
    headers = own(access, cookie, ("Origin", ORIGIN))
    answer = post(gate, access, headers, csrf=access.form, text="x" * LONGEST_BODY)
    assert 413 == answer.status


@pytest.mark.parametrize("sent", ["", "dbanon_studio=", "dbanon_studio=None", "other=1", "=;\x00"])
def test_another_user_of_this_machine_is_refused(gate, access, cookie, sent):
    headers = [("Host", access.host), ("Cookie", sent)]
    assert 403 == ask(gate, "GET", f"{access.base}/", headers=headers).status
    no_base = ask(gate, "GET", "/", headers=own(access, cookie))
    assert 403 == no_base.status


def test_nobody_is_admitted_before_the_address_is_used(gate, access):
    headers = [("Host", access.host), ("Cookie", f"dbanon_studio={access.cookie}")]
    assert 403 == ask(gate, "GET", f"{access.base}/", headers=headers).status


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(gate, access, cookie, method):
    headers = own(access, cookie, ("Origin", ORIGIN))
    assert 403 == ask(gate, method, f"{access.base}/", headers=headers).status


@pytest.mark.parametrize("path", ["/", "/break", "/enter?token=x"])
def test_every_answer_has_the_headers(gate, access, cookie, path):
    answer = ask(gate, "GET", f"{access.base}{path}", headers=own(access, cookie))
    assert {name: answer.headers[name.lower()] for name in HEADERS} == HEADERS
    assert "no-store" == answer.headers["cache-control"]
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_an_unexpected_error_is_named_by_its_type_and_reaches_no_log(gate, access, cookie, capfd):
    answer = ask(gate, "GET", f"{access.base}/break", headers=own(access, cookie))
    assert (500, "ValueError") == (answer.status, answer.text)
    assert CANARY not in answer.text + "".join(capfd.readouterr())
