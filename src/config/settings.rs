//! Every setting, declared once.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use ipnet::IpNet;
use secrecy::SecretString;

use super::{
    Bytes, Declaration, Directory, EmailProvider, EmailTls, LlmProvider, LogFormat, ModerationProvider, Packages,
    PaymentGateway, S3Addressing, SmsProvider, TokenPrice, declare, sources, values,
};
use crate::types::{EmailAddress, MicroAmount, Region, TimeZone};

declare::settings! {
    /// The installation itself.
    "" paths: Paths {
        data_dir: Directory = "./data", flag "data-dir",
            "Directory of the database, its lock and the server key. Made at the first start.";
    }

    /// Listeners, public address and trusted proxies.
    "server" server: Server {
        listen: SocketAddr = "127.0.0.1:8080", flag "listen",
            "Address and port to serve on. Port 0 picks a free port, printed at the start. With server.domain the default is `[::]:443`.";
        domain: Vec<String> = "", flag "domain",
            "Names of the service, for which it gets and renews a certificate by ACME. Without, and without `tls_certificate`, it serves plain HTTP.";
        tls_certificate: Option<String> = "", no flag,
            "PEM file with a chain of certificates that somebody else renews. It is read again when it changes and on SIGHUP.";
        tls_key: Option<String> = "", no flag,
            "PEM file with the private key of `tls_certificate`.";
        redirect_listen: Option<SocketAddr> = "", no flag,
            "Address and port of a plain listener that sends everybody to HTTPS. With server.domain the default is `[::]:80`, because certificate authorities ask there.";
        admin_listen: Option<SocketAddr> = "", flag "admin-listen",
            "Address and port of a second listener, which alone serves /admin then. It serves everything else too.";
        public_url: Option<String> = "", flag "public-url",
            "Address under which clients reach the service, for the API document.";
        trusted_proxies: Vec<IpNet> = "127.0.0.0/8, ::1/128", no flag,
            "Networks whose X-Forwarded-For is believed. The client is the last hop that none of them added.";
        workers: u16 = "0", no flag,
            "Worker threads; 0 for one a core.";
    }

    /// Certificates by ACME, for `server.domain`.
    "acme" acme: Acme {
        directory: String = "https://acme-v02.api.letsencrypt.org/directory", no flag,
            "Address of the certificate authority's directory. Getting a certificate means agreeing to its terms.";
        contact: Option<String> = "", no flag,
            "Email address that the certificate authority may write to.";
        root_certificate: Option<String> = "", no flag,
            "PEM file with the only root that the authority's own address is trusted by, for an authority of your own.";
        retry_after: Duration = "2 minutes", no flag,
            "Time after which a failed attempt is repeated; it doubles with each, up to 6 hours.";
    }

    /// Sign-in.
    "auth" auth: Auth {
        default_region: Region = "CN", no flag,
            "Region of phone numbers written without a country code.";
        allowed_regions: Vec<Region> = "CN", no flag,
            "Regions whose mobile numbers may sign in.";
        review_accounts: BTreeMap<String, SecretString> = "", no flag,
            "Addresses with a fixed code, for app-store reviewers: nothing is sent to them. Six digits for a phone number, eight for an email address. Example: { \"13800138000\" = \"246810\" }.";
        secret_key: Option<SecretString> = "", no flag,
            "Key for the HMACs of codes and addresses, 32 bytes or more. Without it one is made and kept in the data directory.";
        code_lifetime: Duration = "5 minutes", no flag,
            "How long an SMS code is valid.";
        email_code_lifetime: Duration = "10 minutes", no flag,
            "How long an email code is valid.";
        code_tries: u32 = "5", no flag,
            "Wrong codes after which a code is dead.";
        resend_after: Duration = "60 s", no flag,
            "Time between two codes to one address.";
        sends_per_address_hour: u32 = "5", no flag,
            "Codes to one address in a rolling hour.";
        sends_per_address_day: u32 = "10", no flag,
            "Codes to one address in a rolling day.";
        sends_per_client_hour: u32 = "20", no flag,
            "Codes asked for by one client address (IPv6: its /64) in a rolling hour.";
        sends_per_client_day: u32 = "100", no flag,
            "Codes asked for by one client address (IPv6: its /64) in a rolling day.";
        sends_per_day: u32 = "5000", no flag,
            "Codes over all in a rolling day; half of it is logged as a warning.";
        token_lifetime: Duration = "30 days", no flag,
            "How long a token is valid after it was issued.";
        token_renewal: Duration = "7 days", no flag,
            "A token with less than this left is replaced when it is validated.";
        token_grace: Duration = "30 s", no flag,
            "How long a replaced token still works, for answers that were lost.";
        sign_in_lifetime: Duration = "180 days", no flag,
            "How long a sign-in can be renewed before a new code is needed.";
        step_up: Duration = "10 minutes", no flag,
            "How recent a sign-in must be for what cannot be taken back, such as resetting a balance.";
        tokens_per_user: u32 = "10", no flag,
            "Devices signed in at once; one more signs the oldest out.";
    }

    /// The SMS provider.
    "sms" sms: Sms {
        provider: SmsProvider = "console", no flag,
            "`console` prints messages to stderr, for development; `aliyun` sends them.";
        endpoint: String = "https://dysmsapi.aliyuncs.com", no flag,
            "Address of the provider's API.";
        access_key_id: String = "", no flag,
            "Access key id.";
        access_key_secret: Option<SecretString> = "", no flag,
            "Access key secret.";
        sign_name: String = "", no flag,
            "Approved signature, without brackets.";
        template_code: String = "", no flag,
            "Approved template with the variable `code`.";
    }

    /// Email.
    "email" email: Email {
        provider: EmailProvider = "console", no flag,
            "`console` prints messages to stderr, for development; `smtp` sends them through a mail server.";
        host: String = "", no flag,
            "Name of the mail server, as it stands in its certificate.";
        port: u16 = "0", no flag,
            "Port of the mail server; 0 for the usual one: 587 with `starttls`, 465 with `tls`, 25 with `none`.";
        tls: EmailTls = "starttls", no flag,
            "`starttls` encrypts after the greeting, `tls` from the first byte; `none` is for a server on this machine.";
        ca: Option<String> = "", no flag,
            "Certificates to trust beside the public ones, PEM; for a mail server with a certificate of one's own.";
        username: Option<String> = "", no flag,
            "User name at the mail server; without one there is no sign-in.";
        password: Option<SecretString> = "", no flag,
            "Password at the mail server.";
        from: String = "", no flag,
            "Sender: an address, or `Name <address>`.";
        timeout: Duration = "20 s", no flag,
            "Time to hand one message over.";
    }

    /// Content moderation: the service beside the word list; `yarrow moderation switch` says which of them decides.
    "moderation" moderation: Moderation {
        provider: ModerationProvider = "none", no flag,
            "The outside service: `none`, or `aliyun`.";
        endpoint: String = "https://green-cip.cn-shanghai.aliyuncs.com", no flag,
            "Address of the service's API.";
        backup_endpoint: Option<String> = "", no flag,
            "Address in another region, asked once when the first one fails.";
        access_key_id: String = "", no flag,
            "Access key id.";
        access_key_secret: Option<SecretString> = "", no flag,
            "Access key secret.";
        nickname_service: String = "nickname_detection_pro", no flag,
            "The provider's service that judges nicknames.";
        text_service: String = "comment_detection_pro", no flag,
            "The provider's service that judges signatures and questions.";
        answer_service: String = "llm_response_moderation", no flag,
            "The provider's service that judges answers of a model.";
        ignored_labels: Vec<String> = "inappropriate_superstition, religion_t, religion_b", no flag,
            "Labels of the provider that do not count: an oracle's users ask about what an oracle is for.";
        refuse_medium: bool = "true", no flag,
            "Refuse texts of medium risk too, and not only those of high risk.";
        connect_timeout: Duration = "1 s", no flag,
            "Time to connect.";
        timeout: Duration = "3 s", no flag,
            "Time for one call, the one repetition included. A long text is judged in pieces, a call each.";
        max_concurrent_calls: u32 = "32", no flag,
            "Calls that may run at once; one more counts as a failure of the service.";
        texts_per_user_hour: u32 = "1200", no flag,
            "Texts of one user that the service may be asked about in an hour, counted from the first; then 429. Answers of a model do not count.";
        shadow_sample_rate: f64 = "0", no flag,
            "Share of texts, 0 to 1, on which the service that does not decide is asked as well, behind the request; disagreements are kept.";
        disagreements: u32 = "1000", no flag,
            "Disagreements that are kept; the oldest go first.";
        screen_answers: bool = "false", no flag,
            "Screen what a model answers, too. Streams are then told sentence by sentence.";
        contact_numbers: bool = "true", no flag,
            "Refuse nicknames and signatures with a number of seven digits or more, in any script: they are for getting in touch elsewhere.";
    }

    /// The language model that interprets.
    "llm" llm: Llm {
        provider: LlmProvider = "builtin", no flag,
            "`builtin` interprets offline by rules; `openai` asks any OpenAI-compatible server.";
        base_url: String = "https://api.openai.com/v1", no flag,
            "Address of the server, up to and without `/chat/completions`.";
        api_key: Option<SecretString> = "", no flag,
            "Bearer key of the server.";
        model: String = "", no flag,
            "Name of the model.";
        temperature: Option<f64> = "", no flag,
            "Sampling temperature, 0 to 2; the model's own if unset.";
        max_tokens: u32 = "2000", no flag,
            "Tokens an answer may have.";
        connect_timeout: Duration = "5 s", no flag,
            "Time to connect.";
        first_byte_timeout: Duration = "30 s", no flag,
            "Time until a streamed answer begins.";
        idle_timeout: Duration = "30 s", no flag,
            "Time between two pieces of a streamed answer; never less than `first_byte_timeout`.";
        total_timeout: Duration = "120 s", no flag,
            "Time for the whole answer, a repetition and a failover included.";
        max_retry_delay: Duration = "10 s", no flag,
            "A server that asks for more patience than this is not asked a second time.";
        max_response_bytes: Bytes = "256 KiB", no flag,
            "Largest answer, its reasoning included.";
        breaker_threshold: u32 = "5", no flag,
            "Faults of the server in a row after which it is left alone.";
        breaker_pause: Duration = "30 s", no flag,
            "How long it is left alone before one call tries again.";
        calls_per_user: u32 = "2", no flag,
            "Calls that one user may have running or waiting.";
        calls_per_user_hour: u32 = "600", no flag,
            "Interpretations, and turns of conversations, that one user may ask for, and texts that may be refused, in a rolling hour; then 429.";
        max_concurrent_calls: u32 = "32", no flag,
            "Calls that may run over all. Each running call takes a thread.";
        queue: u32 = "32", no flag,
            "Calls that may wait until another one ends.";
        queue_timeout: Duration = "5 s", no flag,
            "How long a call waits for another one to end.";
        heartbeat: Duration = "15 s", no flag,
            "Time without an event after which a stream gets a comment, so that nobody between takes it for dead.";
        chat_messages: u32 = "40", no flag,
            "Messages in one conversation.";
        prices: BTreeMap<String, TokenPrice> = "", no flag,
            "What a million tokens in and out cost, by the model's name. Example: { \"deepseek-chat\" = \"2.00/8.00\" }.";
        currency: String = "CNY", no flag,
            "Currency of the prices, as it is shown.";
        tokens_per_day: Option<u64> = "", no flag,
            "Tokens a day over all, in and out; then 503 `budget_spent`. Warnings are logged at 50 and 80 %.";
        cost_per_day: Option<MicroAmount> = "", no flag,
            "Money a day over all.";
        user_tokens_per_day: Option<u64> = "", no flag,
            "Tokens a day for one user.";
        user_cost_per_day: Option<MicroAmount> = "", no flag,
            "Money a day for one user.";
    }

    /// The server that is asked when the first one cannot answer.
    "llm.fallback" llm_fallback: LlmFallback {
        base_url: Option<String> = "", no flag,
            "Address of an OpenAI-compatible server, up to and without `/chat/completions`. None if unset.";
        api_key: Option<SecretString> = "", no flag,
            "Bearer key of the server.";
        model: String = "", no flag,
            "Name of the model.";
    }

    /// Coins, the balance of the first generation.
    "coins" coins: Coins {
        initial: u32 = "0", no flag,
            "Coins of a new user.";
        consume: u32 = "1", no flag,
            "Coins that one use costs.";
    }

    /// Points, the balance of the current generation.
    "points" points: Points {
        signup_bonus: u32 = "100", no flag,
            "Points of a new user, once for each email address.";
        cast: u32 = "10", no flag,
            "Points that a casting costs.";
        invite_bonus: u32 = "20", no flag,
            "Points for the user whose invite code a new user redeems.";
        invitee_bonus: u32 = "20", no flag,
            "Points for the new user who redeems an invite code.";
        rewarded_invites: u32 = "50", no flag,
            "Invites that earn one user points.";
        invite_window: Duration = "7 days", no flag,
            "How long after the registration an invite code can be redeemed.";
    }

    /// Payments.
    "payment" payment: Payment {
        gateway: PaymentGateway = "sandbox", no flag,
            "`sandbox` is a provider inside the process whose payments cost nothing, for development; `alipay` takes money.";
        app_id: String = "", no flag,
            "Number of the application at the provider.";
        seller_id: Option<String> = "", no flag,
            "The receiver's number, 2088 and 12 digits. With it, notifications for another receiver are refused.";
        private_key: Option<SecretString> = "", no flag,
            "The application's RSA private key, PKCS#1 or PKCS#8, PEM or one line of base64.";
        alipay_public_key: String = "", no flag,
            "The provider's RSA public key, not the application's own.";
        gateway_url: String = "https://openapi.alipay.com/gateway.do", no flag,
            "Address of the provider's API.";
        notify_url: Option<String> = "", no flag,
            "Where the provider reports payments to; `/payment/notify` under `server.public_url` if unset.";
        packages: Packages = "6.00=60, 30.00=330, 68.00=780, 128.00=1500", no flag,
            "The price list: yuan, and the coins that they buy.";
        order_reuse: Duration = "15 minutes", no flag,
            "For so long the same user gets the same open order for the same package.";
        order_lifetime: Duration = "30 minutes", no flag,
            "How long an order can be paid at the provider.";
        checks: Vec<Duration> = "1 minute, 5 minutes, 15 minutes, 1 hour, 6 hours, 25 hours", no flag,
            "Ages at which the provider is asked about an order that is not paid. After the last it is closed.";
        call_timeout: Duration = "15 s", no flag,
            "Time for one call to the provider.";
        ask_again_after: Duration = "2 s", no flag,
            "Time between two questions to the provider that a user's app can cause for one order.";
        max_concurrent_calls: u32 = "16", no flag,
            "Calls to the provider on behalf of users that may run at once.";
        refused_callbacks: u32 = "1000", no flag,
            "Notifications without a valid signature that are kept; the oldest go first.";
    }

    /// Notifications in the app.
    "notifications" notifications: Notifications {
        per_user: u32 = "500", no flag,
            "Notifications addressed to one user that are kept, the newest. Broadcasts do not count.";
        url_hosts: Vec<String> = "", no flag,
            "Hosts that an `open_url` notification may lead to; `*.example.com` stands for all below. Without any, none may.";
    }

    /// Administrators.
    "admin" admin: Admin {
        session_lifetime: Duration = "8 hours", no flag,
            "How long an administrator stays signed in.";
        session_idle: Duration = "30 minutes", no flag,
            "How long an administrator stays signed in without doing anything.";
        attempts: u32 = "3", no flag,
            "Failed sign-ins of one name, and of one client address, in `attempts_window`.";
        attempts_window: Duration = "5 minutes", no flag,
            "Window in which failed sign-ins are counted.";
    }

    /// Limits above which a client address counts as suspicious. 0 switches a reason off.
    "suspicion" suspicion: Suspicion {
        failed_sign_ins: u32 = "10", no flag,
            "Refused sign-ins.";
        failure_share: u32 = "50", no flag,
            "Percent of requests that failed, of at least `requests`.";
        requests: u32 = "20", no flag,
            "Requests from which on the share of failed ones says something.";
        distinct_users: u32 = "20", no flag,
            "Different users signed in from the address.";
        request_rate: u32 = "300", no flag,
            "Requests in one minute.";
    }

    /// Sizes and numbers that bound a request.
    "limits" limits: Limits {
        body: Bytes = "64 KiB", no flag,
            "Largest body, where nothing else is said.";
        auth_body: Bytes = "4 KiB", no flag,
            "Largest body of the sign-in calls.";
        history_body: Bytes = "256 KiB", no flag,
            "Largest body when a casting is saved.";
        interpretation_body: Bytes = "64 KiB", no flag,
            "Largest body when an interpretation is asked for.";
        batch_body: Bytes = "512 KiB", no flag,
            "Largest body of a batch of texts.";
        chat_body: Bytes = "32 KiB", no flag,
            "Largest body of a conversation.";
        notify_body: Bytes = "16 KiB", no flag,
            "Largest body of a payment notification.";
        notify_timeout: Duration = "2 s", no flag,
            "Time in which a payment notification is answered.";
        nickname: u32 = "20", no flag,
            "Characters in a nickname.";
        signature: u32 = "100", no flag,
            "Characters in a signature.";
        question: u32 = "200", no flag,
            "Characters in a question.";
        word: u32 = "50", no flag,
            "Characters in a screened word.";
        label: u32 = "64", no flag,
            "Characters in a question type or a client's record id.";
        feedback_body: Bytes = "32 KiB", no flag,
            "Largest body of feedback.";
        feedback: u32 = "1000", no flag,
            "Characters in feedback.";
        feedback_per_user: u32 = "20", no flag,
            "Feedback that one user may send in a rolling hour.";
        feedback_per_client: u32 = "5", no flag,
            "Feedback that one client address (IPv6: its /64) may send in a rolling hour without signing in.";
        notification_title: u32 = "100", no flag,
            "Characters in the title of a notification.";
        notification_text: u32 = "2000", no flag,
            "Characters in the text of a notification.";
        json_data: Bytes = "64 KiB", no flag,
            "Largest jsonData of a casting.";
        ai_result: Bytes = "32 KiB", no flag,
            "Largest aiResult of a casting.";
        batch: u32 = "100", no flag,
            "Items in one batch.";
        history_records: u32 = "5000", no flag,
            "History records a user may keep.";
        interpretation_records: u32 = "5000", no flag,
            "Records of interpretations, of conversations, and of refused texts, kept of a user; never fewer than `llm.calls_per_user_hour`.";
        page_size: u32 = "20", no flag,
            "Items on a page, if the caller does not say.";
        page_size_max: u32 = "100", no flag,
            "Items on a page at most.";
        time_zone: TimeZone = "Asia/Shanghai", no flag,
            "Zone in which dates without one are read.";
        header_timeout: Duration = "10 s", no flag,
            "Time for the head of a request to arrive, from its first byte.";
        idle_timeout: Duration = "75 s", no flag,
            "Time that a connection may be idle between requests.";
        body_timeout: Duration = "30 s", no flag,
            "Time for the body of a request to arrive.";
        write_timeout: Duration = "15 s", no flag,
            "Time that a change may wait for the disk before the caller is told that the service is overloaded.";
        drain_timeout: Duration = "25 s", no flag,
            "Time for running requests to end when the service stops.";
        connections: u32 = "4096", no flag,
            "Open connections over all; those for administrators and for metrics, where they have a listener of their \
             own, are counted apart.";
        connections_per_client: u32 = "256", no flag,
            "Open connections from one address, or one /64 of IPv6; trusted proxies are exempt.";
        requests: u32 = "1024", no flag,
            "Requests running at once; one more is answered 503.";
        slow_query: Duration = "250 ms", no flag,
            "Work on the database that takes longer is logged as a warning.";
        slow_request: Duration = "1 s", no flag,
            "Requests that take longer are logged as a warning.";
    }

    /// Retention periods.
    "retention" retention: Retention {
        access_log: Duration = "180 days", no flag,
            "Network log entries.";
        code_sends: Duration = "2 days", no flag,
            "Records of sent codes; at least a day, because budgets are counted from them.";
        deactivated_history: Duration = "30 days", no flag,
            "History records after the user deactivated them.";
        parked_points: Duration = "730 days", no flag,
            "Points of a deleted account, kept for its email address.";
        expired_notifications: Duration = "30 days", no flag,
            "Notifications after they expired. They are shown to nobody in that time but administrators.";
        violations: Duration = "180 days", no flag,
            "Records of texts that were refused, and of those on which the services did not agree.";
        payment_records: Duration = "1095 days", no flag,
            "Payment records: when they are cleared, younger ones stay.";
        idempotency_keys: Duration = "72 hours", no flag,
            "Answers to requests with an Idempotency-Key: for so long a repeated request gets the first one's answer.";
    }

    /// The database.
    "database" database: Database {
        mmap_size: Bytes = "0 B", no flag,
            "Part of the file mapped into memory. Faster on large files, but an I/O error then ends the process.";
        cache: Bytes = "8 MiB", no flag,
            "Page cache of each connection.";
        write_queue: u32 = "4096", no flag,
            "Changes that may wait for the disk; one more is answered 503.";
        commit_size: u32 = "512", no flag,
            "Changes that share one commit at most. With 1 each is synced by itself, which is several times slower under load.";
        long_reads: u32 = "4", no flag,
            "Long reads (exports, reports, checks) that may run at once.";
        check_every: Duration = "1 day", no flag,
            "How often the whole file is looked through for damage, unless a backup did; 0 s for never.";
    }

    /// Backups.
    "backup" backup: Backup {
        directory: Option<Directory> = "", no flag,
            "Where backups are kept; `backups` in the data directory if unset. Another disk is better.";
        every: Duration = "1 hour", no flag,
            "Time between two backups that are made without anybody asking. 0 s for none.";
        missed: u32 = "3", no flag,
            "A last backup that is older than this many times `every` is reported as old.";
        keep_hourly: u32 = "24", no flag,
            "So many of the newest backups are kept.";
        keep_daily: u32 = "30", no flag,
            "For so many days the newest backup of each day is kept, and every backup that somebody asked for.";
        keep_size: Bytes = "10 GiB", no flag,
            "Backups take no more of the disk than this: the oldest go first, the newest two stay in any case.";
        free_space: Bytes = "512 MiB", no flag,
            "A backup is only made, fetched or rehearsed if that leaves this much of the disk free.";
        s3_endpoint: Option<String> = "", no flag,
            "Address of a server that speaks S3, where backups are kept as well, by the same rules. None if unset.";
        s3_bucket: String = "", no flag,
            "Name of the bucket.";
        s3_region: String = "us-east-1", no flag,
            "Region of the bucket, which goes into signatures.";
        s3_addressing: S3Addressing = "path", no flag,
            "Where the name of the bucket stands: in the `path` or in the `host` name.";
        s3_prefix: String = "yarrow/", no flag,
            "What names in the bucket begin with.";
        s3_access_key_id: String = "", no flag,
            "Access key id.";
        s3_secret_access_key: Option<SecretString> = "", no flag,
            "Secret access key.";
    }

    /// Numbers for Prometheus.
    "metrics" metrics: Metrics {
        listen: Option<SocketAddr> = "", no flag,
            "Address and port on which `/metrics` is served, for example 127.0.0.1:9180. Off if unset: who can reach it can read it.";
    }

    /// Telling somebody when something is wrong.
    "alerts" alerts: Alerts {
        webhook_url: Option<SecretString> = "", no flag,
            "Where alerts are posted to, as JSON.";
        mail_to: Vec<EmailAddress> = "", no flag,
            "Who gets alerts by email.";
        webhook_secret: Option<SecretString> = "", no flag,
            "Key of the HMAC-SHA-256 over the body that `X-Yarrow-Signature` carries.";
        remind_after: Duration = "1 day", no flag,
            "Time after which it is said again that something is still wrong. 0 s for never.";
        disk_free_percent: u32 = "10", no flag,
            "Less than this share of the disk free is an alert.";
    }

    /// Log lines on stderr.
    "log" log: Log {
        format: LogFormat = "text", flag "log-format",
            "`text` for people, `json` for machines.";
        level: String = "info", flag "log-level",
            "error, warn, info, debug or trace, or a filter such as `info,yarrow::http=debug`.";
    }
}
