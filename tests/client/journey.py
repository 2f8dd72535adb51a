"""Uses both API versions with the generated client. Exits with status 1 at the first unexpected response."""

import os
import re
import subprocess
import sys
import threading
import time
from http import HTTPStatus

from yarrow_client import AuthenticatedClient, Client, models
from yarrow_client.api.divination import (
    delete_session,
    list_sessions,
    get_session,
    count_history,
    get_interpretation,
    cast_session,
    interpret_session,
    interpret_casting,
    delete_history,
    list_history,
    save_history,
    chat,
)
from yarrow_client.api.identity import (
    delete_account,
    sign_out_device,
    get_account,
    export_account,
    list_devices,
    get_preferences,
    get_profile,
    update_account,
    update_preferences,
    change_address,
    sign_in_by_email,
    sign_out,
    refresh_token,
    send_email_code,
    sign_in_by_phone,
    sign_out_v0,
    refresh_token_v0,
    send_sms_code,
    validate_token,
    update_nickname,
    update_profile,
)
from yarrow_client.api.messaging import (
    list_notifications,
    count_unread_notifications,
    list_notifications_v0,
    latest_notification_v0,
    latest_version,
    mark_notification_read,
    mark_all_notifications_read,
    admin_send_notification,
    admin_publish_release,
    send_feedback,
    check_version,
)
from yarrow_client.api.money import (
    get_invite,
    point_balance,
    list_point_entries,
    coin_balance,
    coin_balance_by_phone,
    create_order_by_get_v0,
    redeem_invite,
    consume_coins,
    admin_grant_coins,
    confirm_payment,
)

EMAIL = "li.ming@example.com"
PHONE = "13800138000"
WAIT_SECONDS = 30


class Service:
    """A running server on a new data directory, and its output."""

    def __init__(self, program, directory, settings=None):
        self.program, self.directory, self.lines = program, directory, []
        command = [program, "serve", "--listen", "127.0.0.1:0", "--data-dir", directory]
        settings = os.environ | {"YARROW_AUTH_RESEND_AFTER": "1 s"} | (settings or {})
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=settings)
        threading.Thread(target=self._collect, daemon=True).start()
        self.base_url = self.wait_for(r"yarrow is listening on (http://\S+)")

    def stop(self):
        self.process.terminate()
        self.process.wait(WAIT_SECONDS)

    def _collect(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def wait_for(self, pattern):
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            for line in reversed(list(self.lines)):
                if found := re.search(pattern, line):
                    return found.group(1)
            time.sleep(0.02)
        raise AssertionError(f"no line with {pattern!r} in {self.lines}")

    def code(self, pattern):
        """Returns the code of the newest message and removes the message."""
        code = self.wait_for(pattern)
        self.lines.clear()
        return code

    def command(self, *arguments):
        command = [self.program, *arguments, "--data-dir", self.directory]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def anonymous(self):
        return Client(base_url=self.base_url, raise_on_unexpected_status=True)

    def signed_in(self, token):
        return AuthenticatedClient(base_url=self.base_url, token=token, raise_on_unexpected_status=True)


def done(endpoint, kind, *arguments, status=HTTPStatus.OK, **named):
    """Calls an endpoint and returns the parsed response, which must have this type."""
    response = endpoint.sync_detailed(*arguments, **named)
    assert response.status_code == status, f"{endpoint.__name__}: {response.status_code} {response.content!r}"
    assert kind is None or isinstance(response.parsed, kind), f"{endpoint.__name__}: {response.parsed!r}"
    return response.parsed


def refused(endpoint, status, code, *arguments, **named):
    problem = done(endpoint, models.Problem, *arguments, status=status, **named)
    assert problem.code == code and problem.status == status, problem


def email_code(service, client, email, purpose=None):
    request = {"email": email} if purpose is None else {"email": email, "purpose": purpose}
    body = models.SendEmailCodeBody.from_dict(request)
    assert done(send_email_code, models.EmailCodeSent, client=client, body=body).email == email
    return service.code(rf"Email to {re.escape(email)}.*?\b(\d{{8}})\b")


def log_in(service, email, **more):
    client = service.anonymous()
    code = email_code(service, client, email)
    body = models.SignInByEmailBody(email=email, code=code, **more)
    return done(sign_in_by_email, models.SignedInByEmail, client=client, body=body)


def current_generation(service):
    host = service.signed_in(log_in(service, "host@example.com").token)
    host_code = done(get_invite, models.Invite, client=host).code
    came = log_in(service, EMAIL, device="generated client", invite_code=host_code)
    assert came.is_new_user and came.points_granted == 100 and came.user.points == 120, came
    assert came.invite.redeemed and came.invite.points_granted == 20, came.invite
    client = service.signed_in(came.token)
    casting(client)
    inbox(service, client)
    own = done(get_invite, models.Invite, client=client)
    body = models.RedeemInviteBody(code=own.code)
    refused(redeem_invite, 409, "own_invite", client=client, body=body)
    wishes = models.UpdatePreferencesBody.from_dict(
        {"locale": "en", "timeZone": "Europe/London", "notifications": {"promotion": False}}
    )
    changed = done(update_preferences, models.Preferences, client=client, body=wishes)
    assert changed == done(get_preferences, models.Preferences, client=client)
    assert changed.locale == "en" and changed.notifications.promotion is False, changed
    body = models.SendFeedbackBody(content="很好")
    done(send_feedback, models.FeedbackReceived, client=client, body=body)
    body = models.UpdateAccountBody(nickname="青山", birthday="1990-05-17")
    assert done(update_account, models.Account, client=client, body=body).nickname == "青山"
    add_phone(service, client)
    devices(service, client)
    told = done(export_account, models.ExportAccountResponse200, client=client).to_dict()
    assert told["account"]["email"] == EMAIL and len(told["sessions"]) == 1, told
    leave_and_return(service, client)


def casting(client):
    body = models.CastSessionBody.from_dict(
        {"question": "今年换工作合适吗？", "questionType": "career", "method": "yarrow_stalks"}
    )
    cast = lambda: done(
        cast_session, models.Session, client=client, body=body, idempotency_key="a", status=HTTPStatus.CREATED
    )
    session = cast()
    assert session.id == cast().id and session.balance == 110 and len(session.lines) == 6, session
    assert 1 <= session.hexagram.primary.number <= 64 and session.hexagram.primary.upper.chinese_name
    manual = models.CastSessionBody.from_dict(
        {"question": "?", "method": "manual", "lines": [7, 8, 8, 8, 7, 6]}
    )
    second = done(cast_session, models.Session, client=client, body=manual, status=HTTPStatus.CREATED)
    assert second.hexagram.primary.chinese_name == "屯" and second.hexagram.relating, second
    first = done(interpret_session, models.Interpretation, session.id, client=client)
    assert first.provider == "builtin" and first.result, first
    found = done(get_session, models.Session, session.id, client=client)
    assert found.interpretation.trace_id == first.trace_id and found.interpreted_at, found
    page = done(list_sessions, models.SessionCursorPage, client=client, limit=1)
    rest = done(list_sessions, models.SessionCursorPage, client=client, limit=1, cursor=page.next_cursor)
    assert [item.id for item in page.items + rest.items] == [second.id, session.id], (page, rest)
    done(delete_session, None, second.id, client=client, status=HTTPStatus.NO_CONTENT)
    refused(get_session, 404, "not_found", second.id, client=client)
    assert done(point_balance, models.PointBalance, client=client).balance == 100
    entries = done(list_point_entries, models.PointEntryCursorPage, client=client).items
    assert [entry.kind for entry in entries] == ["cast", "cast", "invitee_bonus", "signup_bonus"], entries


def inbox(service, client):
    key = re.search(r"\S{30,}", service.command("admin", "key", "create", "journey")).group(0)
    admin = service.signed_in(key)
    for title, payload in [
        ("nothing", {"type": "none"}),
        ("a page", {"type": "open_route", "route": "sessions/detail", "params": {"id": "7"}}),
    ]:
        body = models.AdminSendNotificationBody.from_dict(
            {"audience": "all", "title": title, "body": "text", "payload": payload}
        )
        done(admin_send_notification, models.AdminNotification, client=admin, body=body, status=HTTPStatus.CREATED)
    listed = done(list_notifications, models.NotificationCursorPage, client=client).items
    assert [item.title for item in listed] == ["a page", "nothing"], listed
    assert listed[0].payload.to_dict()["params"] == {"id": "7"}, listed[0]
    assert done(count_unread_notifications, models.UnreadCount, client=client).count == 2
    read = done(mark_notification_read, models.Notification, listed[0].id, client=client)
    assert read.read_at and done(count_unread_notifications, models.UnreadCount, client=client).count == 1
    assert done(mark_all_notifications_read, models.MarkedRead, client=client).marked == 1
    anybody = service.anonymous()
    assert done(latest_notification_v0, models.LatestNotification, client=anybody).notification.title == "a page"
    assert len(done(list_notifications_v0, models.AllNotifications, client=anybody).items) == 2
    refused(latest_version, 404, "no_release", client=anybody)
    body = models.AdminPublishReleaseBody.from_dict({"version": "2.0.0", "versionCode": 20, "notes": "新版"})
    done(admin_publish_release, models.AdminRelease, client=admin, body=body, status=HTTPStatus.CREATED)
    body = models.CheckVersionBody.from_dict({"clientVersionCode": 19})
    advice = done(check_version, models.UpdateAdvice, client=anybody, body=body)
    assert advice.update_available and not advice.update_required and advice.latest.version == "2.0.0", advice
    body = models.AdminGrantCoinsBody(phone_number="13900139000", coin_count=3)
    refused(admin_grant_coins, 404, "not_found", client=admin, body=body)


def add_phone(service, client):
    body = models.SendSmsCodeBody.from_dict({"phoneNumber": PHONE, "purpose": "address"})
    done(send_sms_code, models.CodeSent, client=service.anonymous(), body=body)
    code = service.code(rf"SMS to \+86{PHONE}.*?\b(\d{{6}})\b")
    body = models.ChangeAddressBody(code=code, phone_number=PHONE)
    account = done(change_address, models.Account, client=client, body=body)
    assert account.phone_number == PHONE and account.email == EMAIL, account


def devices(service, client):
    listed = done(list_devices, models.Devices, client=client).items
    assert [device.label for device in listed] == ["generated client"] and listed[0].current, listed
    refused(sign_out_device, 404, "not_found", "0" * 16, client=client)


def leave_and_return(service, client):
    points = done(get_account, models.Account, client=client).points
    done(delete_account, None, client=client, status=HTTPStatus.NO_CONTENT)
    refused(get_account, 401, "unauthenticated", client=client)
    # Wait until the address may get another message.
    time.sleep(1.1)
    back = log_in(service, EMAIL)
    assert back.is_new_user and back.restored and back.points_restored == points and back.points_granted == 0, back
    renewed = done(
        refresh_token,
        models.RefreshedToken,
        client=service.anonymous(),
        body=models.RefreshTokenBody(token=back.token),
    )
    body = models.SignOutBody(token=renewed.token)
    assert done(sign_out, models.SignedOut, client=service.anonymous(), body=body).logged_out
    refused(point_balance, 401, "unauthenticated", client=service.signed_in(renewed.token))


def first_generation(service):
    anybody = service.anonymous()
    phone = "13900139001"
    body = models.SendSmsCodeBody(phone_number="+86 139 0013 9001")
    assert done(send_sms_code, models.CodeSent, client=anybody, body=body).phone_number == phone
    code = service.code(rf"SMS to \+86{phone}.*?\b(\d{{6}})\b")
    wrong = models.SignInByPhoneBody(phone_number=phone, code="000000" if code != "000000" else "111111")
    refused(sign_in_by_phone, 401, "invalid_code", client=anybody, body=wrong)
    body = models.SignInByPhoneBody(phone_number=phone, code=code)
    came = done(sign_in_by_phone, models.SignedIn, client=anybody, body=body)
    client = service.signed_in(came.token)
    body = models.ValidateTokenBody(token=came.token)
    assert done(validate_token, models.Validity, client=anybody, body=body).valid
    body = models.UpdateProfileBody.from_dict({"nickname": "青山", "gender": "female", "birthday": "1990-05-17"})
    assert done(update_profile, models.Profile, client=client, body=body).gender == "female"
    body = models.UpdateNicknameBody(nickname="去赌博网站")
    refused(update_nickname, 422, "content_rejected", client=client, body=body)
    assert done(get_profile, models.Profile, client=client, id=came.user_id).nickname == "青山"
    history(client, phone)
    body = models.InterpretCastingBody(question="今年换工作合适吗？", divination_data={"lines": [7, 8, 8, 8, 7, 6]})
    told = done(interpret_casting, models.Interpretation, client=client, body=body)
    record = done(get_interpretation, models.InterpretationRecord, told.trace_id, client=client)
    assert record.result == told.result and record.status == "succeeded", record
    body = models.ChatBody.from_dict({"messages": [{"role": "user", "content": "什么是屯卦？"}]})
    answer = done(chat, models.ChatCompletion, client=client, body=body)
    assert answer.choices[0].message.content, answer
    buy(service, client, phone)
    body = models.RefreshTokenV0Body(token=came.token)
    renewed = done(refresh_token_v0, models.Renewed, client=anybody, body=body)
    body = models.SignOutV0Body(token=renewed.token)
    assert done(sign_out_v0, models.LoggedOut, client=anybody, body=body).logged_out


def history(client, phone):
    body = models.SaveHistoryBody.from_dict(
        {"localRecordId": "r-1", "question": "?", "questionType": "career", "jsonData": {"lines": [7, 8]}, "timestamp": 1}
    )
    done(save_history, models.HistoryRecord, client=client, body=body)
    done(save_history, models.HistoryRecord, client=client, body=body)
    body = models.ListHistoryBody(phone_number=phone)
    listed = done(list_history, models.HistoryRecordList, client=client, body=body)
    assert listed.total == 1 and listed.items[0].local_record_id == "r-1", listed
    assert done(count_history, models.Counted, phone, client=client).count == 1
    body = models.DeleteHistoryBody.from_dict({"localRecordIds": ["r-1"]})
    assert done(delete_history, models.Deleted, client=client, body=body).deleted == 1


def buy(service, client, phone):
    assert done(coin_balance, models.CoinBalance, client=client).balance == 0
    empty = models.ConsumeCoinsBody()
    refused(consume_coins, 402, "insufficient_coins", client=client, body=empty)
    refused(create_order_by_get_v0, 422, "unknown_package", client=client, amount="6.01", coin_count=60)
    order = done(create_order_by_get_v0, models.PaymentOrder, client=client, amount="6.00", coin_count=60)
    service.command("payments", "sandbox-pay", order.order_no)
    body = models.ConfirmPaymentBody.from_dict({"orderNo": order.order_no, "amount": "6.00", "coinCount": 60})
    paid = done(confirm_payment, models.PaymentStatus, client=client, body=body)
    assert paid.status == "credited" and paid.balance == 60, paid
    for _ in range(2):
        used = done(consume_coins, models.CoinsConsumed, client=client, body=empty, idempotency_key="use-1")
        assert used.consumed == 1 and used.balance == 59, used
    assert done(coin_balance_by_phone, models.CoinBalance, client=client, phone_number=phone).balance == 59


def main():
    service = Service(*sys.argv[1:3])
    try:
        first_generation(service)
        current_generation(service)
        service.command("ledger", "verify")
    finally:
        service.stop()
    print("the generated client made the whole journey")


if __name__ == "__main__":
    main()
