"""Signs in with codes sent through a real mail server (aiosmtpd), with each kind of encryption.

The generated client requests the code, and Python's email package reads the message.
"""

import email
import email.policy
import logging
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
import warnings

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from journey import WAIT_SECONDS, Service, done
from yarrow_client import models
from yarrow_client.api.identity import sign_in_by_email, send_email_code

USER, PASSWORD = "yarrow", "the-password-of-the-mailbox"
SUBJECTS = {"zh": "验证码", "en": "code"}


class Mailbox:
    """Records accepted messages and their connections."""

    def __init__(self):
        self.taken = []

    async def handle_DATA(self, server, session, envelope):
        is_encrypted = session.ssl is not None or isinstance(server.transport.get_extra_info("ssl_object"), ssl.SSLObject)
        self.taken.append((envelope, is_encrypted, bool(session.authenticated)))
        return "250 OK"

    def newest(self, count):
        deadline = time.monotonic() + WAIT_SECONDS
        while len(self.taken) < count:
            assert time.monotonic() < deadline, "no message came"
            time.sleep(0.02)
        return self.taken[-1]


class MailServer(Controller):
    """Listens on a free port."""

    def __init__(self, mailbox, **settings):
        super().__init__(mailbox, hostname="127.0.0.1", port=0, **settings)

    def _trigger_server(self):
        # The controller connects to itself after listening, when the port is known.
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


def authenticate(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == (USER.encode(), PASSWORD.encode()))


def certificate(directory):
    """Creates a self-signed certificate for localhost."""
    key, chain = os.path.join(directory, "key.pem"), os.path.join(directory, "chain.pem")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=CA:FALSE"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", chain, *names]
    subprocess.run(make, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    return context, chain


def controller(mode, mailbox, context):
    match mode:
        case "none":
            return MailServer(mailbox)
        case "starttls":
            guarded = {"require_starttls": True, "auth_required": True, "authenticator": authenticate}
            return MailServer(mailbox, tls_context=context, **guarded)
        case "tls":
            # Implicit TLS allows AUTH without STARTTLS.
            guarded = {"auth_required": True, "auth_require_tls": False, "authenticator": authenticate}
            return MailServer(mailbox, ssl_context=context, **guarded)


def sign_in(program, mode, context, chain):
    mailbox = Mailbox()
    server = controller(mode, mailbox, context)
    server.start()
    settings = {
        "YARROW_EMAIL_PROVIDER": "smtp",
        "YARROW_EMAIL_HOST": "localhost",
        "YARROW_EMAIL_PORT": str(server.port),
        "YARROW_EMAIL_TLS": mode,
        "YARROW_EMAIL_FROM": "Yarrow <no-reply@example.com>",
    }
    if mode != "none":
        settings |= {"YARROW_EMAIL_CA_FILE": chain, "YARROW_EMAIL_USERNAME": USER, "YARROW_EMAIL_PASSWORD": PASSWORD}
    with tempfile.TemporaryDirectory() as directory:
        service = Service(program, os.path.join(directory, "data"), settings)
        try:
            for count, language in enumerate(SUBJECTS, start=1):
                ask(service, mailbox, mode, language, count)
        finally:
            service.stop()
            server.stop()


def ask(service, mailbox, mode, language, count):
    address = f"{language}-{mode}@example.com"
    client = service.anonymous().with_headers({"accept-language": language})
    body = models.SendEmailCodeBody(email=address)
    done(send_email_code, models.EmailCodeSent, client=client, body=body)
    envelope, is_encrypted, is_authenticated = mailbox.newest(count)
    assert is_encrypted == is_authenticated == (mode != "none"), (mode, is_encrypted, is_authenticated)
    assert envelope.mail_from == "no-reply@example.com" and envelope.rcpt_tos == [address], envelope
    message = email.message_from_bytes(envelope.content, policy=email.policy.default)
    assert not message.defects and message["To"] == address and SUBJECTS[language] in message["Subject"], message
    text, html = (message.get_body((kind,)).get_content() for kind in ("plain", "html"))
    code = re.search(r"\b\d{8}\b", text).group(0)
    assert code in html and "<" in html, html
    body = models.SignInByEmailBody(email=address, code=code)
    assert done(sign_in_by_email, models.SignedInByEmail, client=client, body=body).user.email == address


def main():
    # aiosmtpd warns about the configuration under test.
    warnings.filterwarnings("ignore", module="aiosmtpd")
    logging.getLogger("mail.log").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as directory:
        context, chain = certificate(directory)
        for mode in ("none", "starttls", "tls"):
            sign_in(sys.argv[1], mode, context, chain)
    print("codes came by mail, in the clear, by STARTTLS and by TLS")


if __name__ == "__main__":
    main()
