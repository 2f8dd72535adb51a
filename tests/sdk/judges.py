"""Buys through every channel with the official SDKs as judges and as clients. Exits with status 1 at the first fault.

Each provider is a stub. The SDK must accept what the service sends to it, and must read the stub's answers, so that the
service reads answers which are right. The SDK must also accept the notifications, and refuse them once they are changed;
the service must agree both times.
"""

import base64
import contextlib
import datetime
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from unittest import mock

import jwt
import stripe
import wechatpayv3
import wechatpayv3.utils
from alipay.aop.api.AlipayClientConfig import AlipayClientConfig
from alipay.aop.api.DefaultAlipayClient import DefaultAlipayClient
from alipay.aop.api.domain.AlipayTradeQueryModel import AlipayTradeQueryModel
from alipay.aop.api.request.AlipayTradeQueryRequest import AlipayTradeQueryRequest
from alipay.aop.api.util import SignatureUtils
from appstoreserverlibrary.api_client import AppStoreServerAPIClient
from appstoreserverlibrary.models.Environment import Environment
from appstoreserverlibrary.signed_data_verifier import SignedDataVerifier, VerificationException
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.x509.oid import NameOID

PHONE, CODE = "13800138000", "246810"
WAIT_SECONDS = 60


def rsa_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def private_pem(key, kind=serialization.PrivateFormat.PKCS8):
    return key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()


def public_pem(key):
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()


def one_line(pem):
    """Returns the base64 text inside PEM."""
    return "".join(line for line in pem.splitlines() if not line.startswith("-"))


class Stub:
    """A provider on a free port. `answer` gets method, path with query, headers and body, and returns status, headers, body."""

    def __init__(self, answer):
        self.requests, self.faults = [], []
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                request = (self.command, self.path, dict(self.headers), body)
                stub.requests.append(request)
                try:
                    status, headers, content = answer(*request)
                except Exception as fault:
                    stub.faults.append(f"{self.command} {self.path}: {fault!r}")
                    status, headers, content = 500, {}, b""
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = handle_any

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def newest(self, part):
        return next(request for request in reversed(self.requests) if part in request[1])


class Service:
    """The program under test with a signed-in user and an API key."""

    def __init__(self, program, directory, settings):
        self.program, self.directory, self.lines = program, str(directory), []
        self.settings = os.environ | {f"YARROW_{name}": str(value) for name, value in settings.items()}
        command = [program, "serve", "--listen", "127.0.0.1:0", "--data-dir", self.directory]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=self.settings)
        threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True).start()
        self.base_url = self.wait_for(r"yarrow is listening on (http://\S+)")
        self.key = json.loads(self.command("admin", "key", "create", "judge"))["key"]
        self.call("POST", "/auth/send-code", form={"phoneNumber": PHONE})
        self.token = self.call("POST", "/auth/login", form={"phoneNumber": PHONE, "code": CODE})["token"]

    def stop(self):
        self.process.terminate()
        self.process.wait(WAIT_SECONDS)

    def wait_for(self, pattern):
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            for line in list(self.lines):
                if found := re.search(pattern, line):
                    return found.group(1)
            time.sleep(0.02)
        raise AssertionError(f"no line with {pattern!r} in {self.lines}")

    def command(self, *arguments):
        command = [self.program, *arguments, "--data-dir", self.directory, "--json"]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=self.settings).stdout

    def send(self, method, path, body=None, headers=None):
        """Returns status and text of a response."""
        request = urllib.request.Request(self.base_url + path, body, headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def call(self, method, path, token=None, form=None, content=None):
        """Returns the parsed response, which must be successful."""
        headers, body = {}, None
        if form is not None:
            headers["content-type"], body = "application/x-www-form-urlencoded", urllib.parse.urlencode(form).encode()
        if content is not None:
            headers["content-type"], body = "application/json", json.dumps(content).encode()
        if token:
            headers["authorization"] = f"Bearer {token}"
        status, text = self.send(method, path, body, headers)
        assert status in (200, 201, 202), f"{method} {path}: {status} {text}"
        return json.loads(text)

    def order(self, channel):
        query = urllib.parse.urlencode({"amount": "6.00", "coinCount": 60, "channel": channel})
        return self.call("GET", f"/payment/gateway/order?{query}", self.token)

    def coins(self):
        return self.call("GET", "/coin/balance", self.token)["balance"]

    def state(self, order_no):
        return self.call("GET", f"/admin/payments/{order_no}", self.key)["order"]["state"]


class refused(contextlib.AbstractContextManager):
    """The block must raise this error."""

    def __init__(self, error):
        self.error = error

    def __exit__(self, kind, *rest):
        assert kind is not None and issubclass(kind, self.error), f"accepted what must be refused: {kind}"
        return True


class Alipay:
    APP_ID, SELLER_ID = "2021000000000001", "2088000000000001"

    def __init__(self):
        self.app, self.platform = rsa_key(), rsa_key()
        self.trades = {}
        self.stub = Stub(self.answer)
        pkcs1 = serialization.PrivateFormat.TraditionalOpenSSL
        self.app_key, self.platform_key = (one_line(private_pem(key, pkcs1)) for key in (self.app, self.platform))

    def settings(self):
        return {
            "PAYMENT_APP_ID": self.APP_ID,
            "PAYMENT_SELLER_ID": self.SELLER_ID,
            "PAYMENT_PRIVATE_KEY": one_line(private_pem(self.app)),
            "PAYMENT_ALIPAY_PUBLIC_KEY": one_line(public_pem(self.platform)),
            "PAYMENT_GATEWAY_URL": f"{self.stub.url}/gateway.do",
            "PAYMENT_NOTIFY_URL": "https://example.com/payment/notify",
        }

    def signed_by_app(self, values):
        """Checks the signature of the service by the SDK, which computes the same one."""
        values = dict(values)
        sign = values.pop("sign")
        content = SignatureUtils.get_sign_content(values)
        assert SignatureUtils.verify_with_rsa(one_line(public_pem(self.app)), content.encode(), sign)
        assert SignatureUtils.sign_with_rsa2(self.app_key, content, "utf-8") == sign
        return values

    def answer(self, method, path, headers, body):
        query = urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query) + urllib.parse.parse_qsl(body.decode())
        values = self.signed_by_app(query)
        assert values["app_id"] == self.APP_ID and values["method"] == "alipay.trade.query", values
        order_no = json.loads(values["biz_content"])["out_trade_no"]
        content = {"code": "10000", "msg": "Success", "out_trade_no": order_no} | self.trades[order_no]
        text = json.dumps(content, ensure_ascii=False)
        sign = SignatureUtils.sign_with_rsa2(self.platform_key, text, "utf-8")
        reply = f'{{"alipay_trade_query_response":{text},"sign":"{sign}"}}'
        return 200, {"content-type": "text/html;charset=utf-8"}, reply.encode()

    @staticmethod
    def post(url, query, headers, parameters, charset, timeout):
        body = urllib.parse.urlencode(parameters, encoding=charset).encode()
        request = urllib.request.Request(f"{url}?{query}", body, headers, method="POST")
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as response:
            return response.read()

    def check(self, service):
        order = service.order("alipay")
        values = self.signed_by_app(urllib.parse.parse_qsl(order["orderString"], strict_parsing=True))
        content = json.loads(values["biz_content"])
        assert values["method"] == "alipay.trade.app.pay" and values["sign_type"] == "RSA2", values
        assert (content["out_trade_no"], content["total_amount"]) == (order["orderNo"], "6.00"), content

        # The SDK reads the stub's answer, so it is one that Alipay could give.
        trade = {
            "trade_no": "2026010222001400000000000001",
            "trade_status": "TRADE_SUCCESS",
            "total_amount": "6.00",
            "buyer_logon_id": "明***@example.com",
            "send_pay_date": "2026-01-02 03:04:05",
        }
        self.trades[order["orderNo"]] = trade
        config = AlipayClientConfig()
        config.server_url, config.app_id = f"{self.stub.url}/gateway.do", self.APP_ID
        config.app_private_key, config.alipay_public_key = self.app_key, one_line(public_pem(self.platform))
        model = AlipayTradeQueryModel()
        model.out_trade_no = order["orderNo"]
        # The SDK cannot call an address with a port, so the transport is replaced.
        with mock.patch("alipay.aop.api.DefaultAlipayClient.do_post", self.post):
            read = json.loads(DefaultAlipayClient(config).execute(AlipayTradeQueryRequest(biz_model=model)))
        assert read["trade_status"] == "TRADE_SUCCESS", read
        before = service.coins()
        queried = service.call("POST", f"/admin/payments/{order['orderNo']}/query", service.key)
        assert (queried["verdict"], service.coins() - before) == ("credited", 60), queried

        # A notification that the SDK signs.
        order = service.order("alipay")
        form = {
            "app_id": self.APP_ID, "charset": "utf-8", "gmt_payment": "2026-01-02 03:04:05",
            "notify_id": "2026010200222030405000000000001", "notify_type": "trade_status_sync",
            "out_trade_no": order["orderNo"], "seller_id": self.SELLER_ID, "subject": "60 金币 & 6%",
            "total_amount": "6.00", "trade_no": "2026010222001400000000000002", "trade_status": "TRADE_SUCCESS",
        }
        sign = SignatureUtils.sign_with_rsa2(self.platform_key, SignatureUtils.get_sign_content(form), "utf-8")
        for changes, answer in [({"total_amount": "7.00"}, "fail"), ({}, "success"), ({}, "success")]:
            body = urllib.parse.urlencode(form | changes | {"sign": sign, "sign_type": "RSA2"}).encode()
            headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
            assert service.send("POST", "/payment/notify", body, headers) == (200, answer)
        assert service.coins() - before == 120


class WeChatPay:
    MERCHANT, APP_ID, SERIAL = "1900000001", "wx0123456789abcdef", "4AB22EC0FF9B8BBF5F5DE9C4A1D4B2B6B2B4C5D6"
    KEY_ID, API_KEY = "PUB_KEY_ID_0119000000012026010100000000000001", "0123456789abcdef0123456789abcdef"

    def __init__(self, work):
        self.merchant, self.platform = rsa_key(), rsa_key()
        self.paid = {}
        self.stub = Stub(self.answer)
        self.key_file = pathlib.Path(work) / "wechat.pem"
        self.key_file.write_text(public_pem(self.platform))
        self.sdk = wechatpayv3.WeChatPay(
            wechatpay_type=wechatpayv3.WeChatPayType.APP, mchid=self.MERCHANT, private_key=private_pem(self.merchant),
            cert_serial_no=self.SERIAL, apiv3_key=self.API_KEY, appid=self.APP_ID,
            notify_url="https://example.com/payment/notify/wechat", public_key=public_pem(self.platform),
            public_key_id=self.KEY_ID,
        )
        self.sdk._core._gate_way = self.stub.url

    def settings(self):
        return {
            "PAYMENT_WECHAT_APP_ID": self.APP_ID,
            "PAYMENT_WECHAT_MERCHANT_ID": self.MERCHANT,
            "PAYMENT_WECHAT_MERCHANT_SERIAL": self.SERIAL,
            "PAYMENT_WECHAT_PRIVATE_KEY": private_pem(self.merchant),
            "PAYMENT_WECHAT_API_V3_KEY": self.API_KEY,
            "PAYMENT_WECHAT_PUBLIC_KEY_ID": self.KEY_ID,
            "PAYMENT_WECHAT_PUBLIC_KEY": self.key_file,
            "PAYMENT_WECHAT_BASE_URL": self.stub.url,
            "PAYMENT_WECHAT_NOTIFY_URL": "https://example.com/payment/notify/wechat",
        }

    def signature(self, text):
        """Returns the headers of a message that WeChat Pay signs."""
        timestamp, nonce = str(int(time.time())), uuid.uuid4().hex
        return {
            "Wechatpay-Timestamp": timestamp,
            "Wechatpay-Nonce": nonce,
            "Wechatpay-Serial": self.KEY_ID,
            "Wechatpay-Signature": wechatpayv3.utils.rsa_sign(self.platform, f"{timestamp}\n{nonce}\n{text}\n"),
            "Wechatpay-Signature-Type": "WECHATPAY2-SHA256-RSA2048",
        }

    def answer(self, method, path, headers, body):
        self.check_authorization(method, path, headers, body)
        if method == "POST" and path == "/v3/pay/transactions/app":
            content = {"prepay_id": "wx26112221580621e9b071c00d9e093b0000"}
        elif method == "GET" and path.startswith("/v3/pay/transactions/out-trade-no/"):
            content = self.paid[urllib.parse.urlsplit(path).path.rsplit("/", 1)[1]]
        elif method == "POST" and path == "/v3/refund/domestic/refunds":
            asked = json.loads(body)
            content = {
                "refund_id": "50000000382019052709732678859", "out_refund_no": asked["out_refund_no"],
                "transaction_id": "4200000000202601020000000001", "out_trade_no": asked["out_trade_no"],
                "channel": "ORIGINAL", "user_received_account": "支付用户零钱", "status": "SUCCESS",
                "success_time": "2026-01-02T04:04:05+08:00", "create_time": "2026-01-02T04:04:04+08:00",
                "amount": asked["amount"] | {"payer_total": 600, "payer_refund": asked["amount"]["refund"]},
            }
        elif method == "GET" and path == "/v3/certificates":
            return 404, {"content-type": "application/json"}, b'{"code":"RESOURCE_NOT_EXISTS","message":""}'
        else:
            raise AssertionError(f"{method} {path}")
        text = json.dumps(content, ensure_ascii=False)
        return 200, {"content-type": "application/json; charset=utf-8"} | self.signature(text), text.encode()

    def check_authorization(self, method, path, headers, body):
        """The SDK, with the same time and nonce, must compute the same header."""
        sent = {name.lower(): value for name, value in headers.items()}["authorization"]
        kind, rest = sent.split(" ", 1)
        parts = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        with mock.patch("time.time", return_value=float(parts["timestamp"])):
            expected = wechatpayv3.utils.build_authorization(
                path, method, self.MERCHANT, self.SERIAL, self.merchant, body.decode(), parts["nonce_str"]
            )
        assert kind == expected.split(" ")[0], sent
        assert parts == dict(re.findall(r'(\w+)="([^"]*)"', expected)), (parts, expected)

    def notification(self, event, content):
        nonce, about = uuid.uuid4().hex[:12], "transaction"
        sealed = AESGCM(self.API_KEY.encode()).encrypt(nonce.encode(), json.dumps(content).encode(), about.encode())
        text = json.dumps({
            "id": str(uuid.uuid4()), "create_time": "2026-01-02T03:04:05+08:00", "event_type": event,
            "resource_type": "encrypt-resource", "summary": "支付成功",
            "resource": {
                "algorithm": "AEAD_AES_256_GCM", "ciphertext": base64.b64encode(sealed).decode(), "nonce": nonce,
                "associated_data": about, "original_type": "transaction",
            },
        }, ensure_ascii=False)
        return self.signature(text) | {"Content-Type": "application/json"}, text

    def check(self, service):
        order = service.order("wechat")
        payment = order["payment"]
        signed = [self.APP_ID, payment["timestamp"], payment["noncestr"], payment["prepayid"]]
        assert payment["sign"] == self.sdk.sign(signed) and payment["partnerid"] == self.MERCHANT, payment
        # The SDK makes the same request for the same order.
        ours = json.loads(self.stub.newest("/v3/pay/transactions/app")[3])
        code, text = self.sdk.pay(
            description=ours["description"], out_trade_no=order["orderNo"], amount={"total": 600, "currency": "CNY"},
            time_expire=ours["time_expire"],
        )
        assert code == 200 and json.loads(text)["prepay_id"] == payment["prepayid"], text
        theirs = json.loads(self.stub.newest("/v3/pay/transactions/app")[3])
        assert ours == theirs, (ours, theirs)

        trade = {
            "appid": self.APP_ID, "mchid": self.MERCHANT, "out_trade_no": order["orderNo"],
            "transaction_id": "4200000000202601020000000001", "trade_type": "APP", "trade_state": "SUCCESS",
            "trade_state_desc": "支付成功", "bank_type": "OTHERS", "attach": "", "payer": {"openid": "oUpF8uMuAJO"},
            "success_time": "2026-01-02T03:04:05+08:00",
            "amount": {"total": 600, "payer_total": 590, "currency": "CNY", "payer_currency": "CNY"},
        }
        headers, text = self.notification("TRANSACTION.SUCCESS", trade)
        opened = self.sdk.callback(headers, text)
        assert opened["resource"]["out_trade_no"] == order["orderNo"], opened
        before, changed = service.coins(), text.replace("encrypt-resource", "encrypt-resourcE")
        assert self.sdk.callback(headers, changed) is None
        for body, statuses in [(changed, (401,)), (text, (200, 204)), (text, (200, 204))]:
            status, answer = service.send("POST", "/payment/notify/wechat", body.encode(), headers)
            assert status in statuses, (status, answer)
        assert service.coins() - before == 60

        # Queries and refunds: the SDK reads the stub's answers, and the service does.
        self.paid[order["orderNo"]] = trade
        code, text = self.sdk.query(out_trade_no=order["orderNo"])
        assert code == 200 and json.loads(text)["trade_state"] == "SUCCESS", text
        queried = service.call("POST", f"/admin/payments/{order['orderNo']}/query", service.key)
        assert queried["trade"]["status"] == "TRADE_SUCCESS", queried
        refund = {"amount": "1.50", "refundNo": "R1", "reason": "wrong purchase"}
        made = service.call("POST", f"/admin/payments/{order['orderNo']}/refund", service.key, content=refund)
        assert made["refund"]["state"] in ("succeeded", "processing"), made
        code, text = self.sdk.refund(
            out_refund_no="R2", amount={"refund": 150, "total": 600, "currency": "CNY"}, out_trade_no=order["orderNo"],
        )
        assert code == 200 and json.loads(text)["status"] == "SUCCESS", text


class Stripe:
    KEY, SECRET = "sk_live_0123456789", "whsec_0123456789abcdefghijklmnopqrstuv"

    def __init__(self):
        self.session = None
        self.stub = Stub(self.answer)

    def settings(self):
        return {
            "PAYMENT_STRIPE_SECRET_KEY": self.KEY,
            "PAYMENT_STRIPE_WEBHOOK_SECRET": self.SECRET,
            "PAYMENT_STRIPE_CURRENCY": "usd",
            "PAYMENT_STRIPE_PRICES": "6.00=0.99",
            "PAYMENT_STRIPE_SUCCESS_URL": "https://example.com/paid",
            "PAYMENT_STRIPE_CANCEL_URL": "https://example.com/cancelled",
            "PAYMENT_STRIPE_BASE_URL": self.stub.url,
        }

    def answer(self, method, path, headers, body):
        assert {name.lower(): value for name, value in headers.items()}["authorization"] == f"Bearer {self.KEY}"
        assert (method, path) == ("POST", "/v1/checkout/sessions"), path
        form = dict(urllib.parse.parse_qsl(body.decode()))
        self.session = {
            "id": "cs_live_a1b2c3", "object": "checkout.session", "amount_total": 99, "currency": "usd",
            "client_reference_id": form["client_reference_id"], "livemode": True, "mode": "payment",
            "payment_intent": None, "payment_status": "unpaid", "status": "open", "metadata": {},
            "url": "https://checkout.stripe.com/c/pay/cs_live_a1b2c3",
        }
        return 200, {"content-type": "application/json"}, json.dumps(self.session).encode()

    def check(self, service):
        order = service.order("stripe")
        assert (order["currency"], order["amount"]) == ("USD", "0.99"), order
        form = lambda: dict(urllib.parse.parse_qsl(self.stub.newest("/v1/checkout/sessions")[3].decode()))
        ours = form()
        # The SDK encodes the same session alike.
        client = stripe.StripeClient(self.KEY, base_addresses={"api": self.stub.url})
        session = client.v1.checkout.sessions.create({
            "mode": "payment", "client_reference_id": order["orderNo"], "expires_at": int(ours["expires_at"]),
            "line_items": [{"quantity": 1, "price_data": {
                "currency": "usd", "unit_amount": 99,
                "product_data": {"name": ours["line_items[0][price_data][product_data][name]"]},
            }}],
            "metadata": {"order_no": order["orderNo"]},
            "payment_intent_data": {"metadata": {"order_no": order["orderNo"]}},
            "success_url": "https://example.com/paid", "cancel_url": "https://example.com/cancelled",
        })
        assert session.url == order["payment"]["url"], session
        assert form() == ours, (form(), ours)

        paid = self.session | {"payment_status": "paid", "status": "complete", "payment_intent": "pi_1"}
        payload = json.dumps({
            "id": "evt_1", "object": "event", "api_version": "2026-01-28.clover", "created": int(time.time()),
            "livemode": True, "type": "checkout.session.completed", "data": {"object": paid},
        })
        header = stripe.WebhookSignature.generate_signature_header(payload, self.SECRET)
        stripe.Webhook.construct_event(payload, header, self.SECRET)
        changed = payload.replace("evt_1", "evt_2")
        with refused(stripe.SignatureVerificationError):
            stripe.Webhook.construct_event(changed, header, self.SECRET)
        stale = stripe.WebhookSignature.generate_signature_header(payload, self.SECRET, int(time.time()) - 400)
        with refused(stripe.SignatureVerificationError):
            stripe.Webhook.construct_event(payload, stale, self.SECRET)
        before = service.coins()
        for body, signature, statuses in [
            (changed, header, (401,)), (payload, stale, (401,)), (payload, header, (200, 204)),
            (payload, header, (200, 204)),
        ]:
            headers = {"Stripe-Signature": signature, "Content-Type": "application/json"}
            status, answer = service.send("POST", "/payment/notify/stripe", body.encode(), headers)
            assert status in statuses, (status, answer)
        assert (service.coins() - before, service.state(order["orderNo"])) == (60, "credited")


class AppStore:
    BUNDLE, APP_ID, PRODUCT = "com.example.yarrow", 1234567890, "com.example.yarrow.coins60"
    ISSUER, KEY_ID = "99b16628-15e4-4668-972b-eeff55eeff55", "ABCDEFGHIJ"

    def __init__(self):
        self.api_key = ec.generate_private_key(ec.SECP256R1())
        self.leaf, self.chain = self.make_chain()
        self.transactions = {}
        self.stub = Stub(self.answer)
        root = self.chain[2].public_bytes(serialization.Encoding.DER)
        self.root = base64.b64encode(root).decode()
        self.verifier = SignedDataVerifier([root], False, Environment.PRODUCTION, self.BUNDLE, self.APP_ID)
        self.api = AppStoreServerAPIClient(
            private_pem(self.api_key).encode(), self.KEY_ID, self.ISSUER, self.BUNDLE, Environment.PRODUCTION
        )
        self.api._base_url = self.stub.url

    @staticmethod
    def make_chain():
        """Returns the leaf's key and the certificates of leaf, intermediate and root, with Apple's markers."""
        now = datetime.datetime.now(datetime.timezone.utc)
        keys = [ec.generate_private_key(curve) for curve in (ec.SECP256R1(), ec.SECP384R1(), ec.SECP384R1())]
        names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("Leaf", "Middle", "Root")]
        markers = ["1.2.840.113635.100.6.11.1", "1.2.840.113635.100.6.2.1", None]
        chain = []
        for place, (key, name, marker) in enumerate(zip(keys, names, markers)):
            issuer = min(place + 1, 2)
            builder = (
                x509.CertificateBuilder().subject_name(name).issuer_name(names[issuer]).public_key(key.public_key())
                .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
                .not_valid_after(now + datetime.timedelta(days=365))
                .add_extension(x509.BasicConstraints(ca=place > 0, path_length=None), critical=True)
                .add_extension(x509.KeyUsage(
                    digital_signature=place == 0, content_commitment=False, key_encipherment=False,
                    data_encipherment=False, key_agreement=False, key_cert_sign=place > 0, crl_sign=place > 0,
                    encipher_only=False, decipher_only=False,
                ), critical=True)
                .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
                .add_extension(
                    x509.AuthorityKeyIdentifier.from_issuer_public_key(keys[issuer].public_key()), critical=False
                )
            )
            if marker:
                builder = builder.add_extension(
                    x509.UnrecognizedExtension(x509.ObjectIdentifier(marker), b"\x05\x00"), critical=False
                )
            chain.append(builder.sign(keys[issuer], hashes.SHA384()))
        return keys[0], chain

    def settings(self):
        return {
            "PAYMENT_APPLE_BUNDLE_ID": self.BUNDLE,
            "PAYMENT_APPLE_APP_APPLE_ID": self.APP_ID,
            "PAYMENT_APPLE_ISSUER_ID": self.ISSUER,
            "PAYMENT_APPLE_KEY_ID": self.KEY_ID,
            "PAYMENT_APPLE_PRIVATE_KEY": private_pem(self.api_key),
            "PAYMENT_APPLE_ROOT": self.root,
            "PAYMENT_APPLE_BASE_URL": self.stub.url,
            "PAYMENT_APPLE_SANDBOX_BASE_URL": self.stub.url,
        }

    def sign(self, payload, key=None):
        chain = [base64.b64encode(one.public_bytes(serialization.Encoding.DER)).decode() for one in self.chain]
        return jwt.encode(payload, key or self.leaf, algorithm="ES256", headers={"x5c": chain})

    def transaction(self, number, account_token, **changes):
        now = int(time.time() * 1000)
        return {
            "transactionId": number, "originalTransactionId": number, "bundleId": self.BUNDLE,
            "productId": self.PRODUCT, "purchaseDate": now - 1000, "originalPurchaseDate": now - 1000, "quantity": 1,
            "type": "Consumable", "inAppOwnershipType": "PURCHASED", "signedDate": now, "environment": "Production",
            "transactionReason": "PURCHASE", "storefront": "USA", "storefrontId": "143441", "price": 990,
            "currency": "USD", "appAccountToken": account_token,
        } | changes

    def notification(self, kind, transaction):
        data = {
            "environment": "Production", "appAppleId": self.APP_ID, "bundleId": self.BUNDLE,
            "signedTransactionInfo": self.sign(transaction),
        }
        return self.sign({
            "notificationType": kind, "notificationUUID": str(uuid.uuid4()), "version": "2.0",
            "signedDate": int(time.time() * 1000), "data": data,
        })

    def answer(self, method, path, headers, body):
        bearer = {name.lower(): value for name, value in headers.items()}["authorization"].removeprefix("Bearer ")
        claims = jwt.decode(
            bearer, self.api_key.public_key(), algorithms=["ES256"], audience="appstoreconnect-v1", issuer=self.ISSUER
        )
        theirs = jwt.decode(self.api._generate_token(), options={"verify_signature": False})
        assert set(theirs) <= set(claims) and claims["bid"] == theirs["bid"], claims
        assert claims["exp"] - time.time() <= 3600, claims
        assert jwt.get_unverified_header(bearer)["kid"] == self.KEY_ID
        if path == "/inApps/v1/notifications/history":
            content = {"notificationHistory": [], "hasMore": False}
        else:
            assert path.startswith("/inApps/v1/transactions/"), path
            content = {"signedTransactionInfo": self.sign(self.transactions[path.rsplit("/", 1)[1]])}
        return 200, {"content-type": "application/json"}, json.dumps(content).encode()

    def check(self, service):
        terms = {"asset": "coin", "count": 60, "appleId": self.PRODUCT, "reason": "judges"}
        service.call("PUT", "/admin/products/gold60", service.key, content=terms)
        token = service.call("GET", "/api/v1/payment/account-token", service.token)["accountToken"]

        def report(jws):
            headers = {"authorization": f"Bearer {service.token}", "content-type": "application/json"}
            body = json.dumps({"signedTransaction": jws}).encode()
            return service.send("POST", "/api/v1/purchases/apple", body, headers)[0]

        def notify(signed):
            body = json.dumps({"signedPayload": signed}).encode()
            return service.send("POST", "/payment/notify/apple", body, {"content-type": "application/json"})[0]

        before, bought = service.coins(), self.transaction("2000000800000001", token)
        signed = self.sign(bought)
        assert self.verifier.verify_and_decode_signed_transaction(signed).transactionId == "2000000800000001"
        forged = self.sign(bought, ec.generate_private_key(ec.SECP256R1()))
        with refused(VerificationException):
            self.verifier.verify_and_decode_signed_transaction(forged)
        assert [report(jws) for jws in (forged, signed, signed)] == [422, 200, 200]
        assert service.coins() - before == 60

        other = self.notification("ONE_TIME_CHARGE", self.transaction("2000000800000002", token))
        assert self.verifier.verify_and_decode_notification(other).notificationUUID
        assert [notify(signed) for signed in (other[:-8] + "AAAAAAAA", other, other)] == [400, 200, 200]
        assert service.coins() - before == 120

        # The server API: the SDK reads the stub's answer, and the service sees the refund in it.
        revoked = bought | {"revocationDate": int(time.time() * 1000), "revocationReason": 0}
        self.transactions["2000000800000001"] = revoked
        read = self.api.get_transaction_info("2000000800000001").signedTransactionInfo
        assert self.verifier.verify_and_decode_signed_transaction(read).revocationDate
        queried = service.call("POST", "/admin/purchases/2000000800000001/query", service.key)
        assert (queried["state"], service.coins() - before) == ("revoked", 60), queried


def main():
    program, work = sys.argv[1:3]
    providers = [Alipay(), WeChatPay(work), Stripe(), AppStore()]
    settings = {"AUTH_REVIEW_ACCOUNTS": f"{PHONE}={CODE}", "PAYMENT_CHANNELS": "alipay, wechat, stripe"}
    for provider in providers:
        settings |= provider.settings()
    service = Service(program, pathlib.Path(work) / "data", settings)
    try:
        for provider in providers:
            provider.check(service)
            assert not provider.stub.faults, provider.stub.faults
            print(f"the SDK and the service agree: {type(provider).__name__}")
        service.command("ledger", "verify")
        report = json.loads(service.command("payments", "report", "--from", "2020-01-01", "--to", "2100-01-01"))
        assert report["differences"] == [], report
    finally:
        service.stop()


if __name__ == "__main__":
    main()
