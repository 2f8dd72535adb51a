//! Every setting, declared once.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use ipnet::IpNet;
use secrecy::SecretString;

use super::{
    Bytes, Declaration, Directory, EmailProvider, EmailTls, LlmProvider, LogFormat, MatchRule, ModerationProvider,
    Packages, PaymentProvider, Prices, S3Addressing, SmsProvider, SuspensionRule, TokenPrice, WrongCodeStatus, declare,
    sources, values,
};
use crate::types::{Currency, Date, EmailAddress, HostPattern, MicroAmount, OriginPattern, Region, TimeZone};

declare::settings! {
    /// Data directory.
    "" paths: PathsConfig {
        data_dir: Directory = "./data", flag "data-dir",
            "Directory of the database, its lock file and the server key. Created at the first start.";
    }

    /// Listeners, public address and trusted proxies.
    "server" server: ServerConfig {
        listen: SocketAddr = "127.0.0.1:8080", flag "listen",
            "Address and port of the main listener. Port 0 picks a free port, which is printed at start. With `server.domain` the default is `[::]:443`.";
        domain: Vec<String> = "", flag "domain",
            "Host names of the service. It obtains and renews a certificate for them by ACME. Without this setting and `tls_certificate` it serves plain HTTP.";
        tls_certificate: Option<String> = "",
            "PEM file with a certificate chain that something else renews. Reloaded when it changes and on SIGHUP.";
        tls_key: Option<String> = "",
            "PEM file with the private key of `tls_certificate`.";
        redirect_listen: Option<SocketAddr> = "",
            "Address and port of a plain HTTP listener that redirects to HTTPS. With `server.domain` the default is `[::]:80`, which ACME challenges need.";
        admin_listen: Option<SocketAddr> = "", flag "admin-listen",
            "Address and port of a second listener. If set, /admin is served only there; all other paths are served on both.";
        public_url: Option<String> = "", flag "public-url",
            "Base URL under which clients reach the service, for the API document.";
        hosts: Vec<String> = "",
            "Host names of listeners without TLS on loopback addresses and of the listeners for administrators and metrics, besides `server.domain` and the host of `server.public_url`. Requests for other names are rejected, which prevents DNS rebinding. IP addresses and names without a dot are always accepted.";
        allowed_origins: Vec<OriginPattern> = "",
            "Origins of web pages, besides the service's own, that may call the API from a browser and read its responses (CORS), such as `https://app.example.com`; `https://*.example.com` allows all hosts below. They may not call /admin.";
        allowed_headers: Vec<String> = "traceparent, tracestate, baggage, sentry-trace",
            "Headers that pages of `server.allowed_origins` may send besides those that the API reads, such as those of browser tracing.";
        sunset: Option<Date> = "",
            "Day from which deprecated endpoints may be gone, such as 2027-12-31. If set, their responses name it (`Sunset`) and what replaces them (`Link`).";
        hsts: Duration = "180 days",
            "Time for which browsers use only HTTPS for the host (`Strict-Transport-Security`). Sent by listeners with TLS. 0 s turns it off.";
        trusted_proxies: Vec<IpNet> = "127.0.0.0/8, ::1/128",
            "Networks whose X-Forwarded-For header is trusted. The client is the last address in it that is not in these networks.";
        workers: u16 = "0",
            "Number of worker threads; 0 for one per core.";
    }

    /// The name under which users know the service.
    "brand" brand: BrandConfig {
        name: String = "Yarrow",
            "The name in messages, in the instructions of language models and on pictures of castings.";
    }

    /// Certificates by ACME, for `server.domain`.
    "acme" acme: AcmeConfig {
        directory: String = "https://acme-v02.api.letsencrypt.org/directory",
            "URL of the ACME directory. Obtaining a certificate means agreeing to the authority's terms.";
        contact: Option<String> = "",
            "Email address that the certificate authority may write to.";
        root_certificate: Option<String> = "",
            "PEM file with the root certificate of a private certificate authority. If set, only this root is trusted for the ACME connection.";
        retry_after: Duration = "2 minutes", at_least "1 ms",
            "Delay after a failed attempt. It doubles with each failure, up to 6 hours.";
    }

    /// Sign-in.
    "auth" auth: AuthConfig {
        default_region: Region = "CN",
            "Region of phone numbers without a country code.";
        allowed_regions: Vec<Region> = "CN",
            "Regions whose mobile numbers may sign in.";
        review_accounts: BTreeMap<String, SecretString> = "",
            "Addresses with a fixed code, for app-store reviewers. Nothing is sent to them; the limits are those of all addresses. Six digits for a phone number, eight for an email address. Example: { \"13800138000\" = \"246810\" }.";
        secret_key: Option<SecretString> = "",
            "Key for the HMACs of codes and addresses, at least 32 bytes. If unset, one is generated and kept in the data directory.";
        code_lifetime: Duration = "5 minutes", at_least "1 ms",
            "Lifetime of an SMS code.";
        email_code_lifetime: Duration = "10 minutes", at_least "1 ms",
            "Lifetime of an email code.";
        wrong_code_status: WrongCodeStatus = "401",
            "Status of the response to a wrong verification code: `401`, or `422` for apps that sign out on every 401.";
        code_tries: u32 = "5", at_least "1",
            "Wrong attempts after which a code becomes invalid.";
        resend_after: Duration = "60 s",
            "Minimum time between two codes to one address.";
        sends_per_address_hour: u32 = "5",
            "Codes per address in a rolling hour.";
        sends_per_address_day: u32 = "10",
            "Codes per address in a rolling day.";
        sends_per_client_hour: u32 = "60",
            "Codes requested by one client address (IPv6: its /64) in a rolling hour. Its /24 or /56 may request 4 times as many, an IPv6 /48 8 times. Each may send `code_tries` times as many wrong codes.";
        sends_per_client_day: u32 = "300",
            "Codes requested by one client address (IPv6: its /64) in a rolling day, and by the networks around it as above.";
        sends_per_day: u32 = "5000",
            "Codes in total in a rolling day. An IPv4 /24 or IPv6 /48 may spend a quarter of what is left of it, but always `sends_per_client_hour`. A warning is logged at half and at all of it.";
        token_headers: Vec<String> = "token, satoken, X-Access-Token",
            "Headers that carry a token besides `Authorization`, for apps that send it there.";
        token_lifetime: Duration = "30 days", at_least "1 ms",
            "Lifetime of a token after it was issued or extended.";
        token_renewal: Duration = "7 days",
            "A token with less than this lifetime left is extended when it is validated.";
        token_grace: Duration = "30 s",
            "Time for which a replaced token stays valid, in case the response with the new one was lost.";
        sign_in_lifetime: Duration = "180 days", at_least "1 ms",
            "Time for which a sign-in can be renewed before a new code is needed.";
        step_up: Duration = "10 minutes",
            "Maximum age of a sign-in for operations that cannot be undone, such as resetting a balance.";
        tokens_per_user: u32 = "10", at_least "1",
            "Devices that one user may have signed in. One more signs out the oldest.";
        identity_timeout: Duration = "5 s", at_least "1 ms",
            "Timeout of one call to a provider of identities.";
        max_identity_checks: u32 = "16", at_least "1",
            "Maximum number of proofs of identity that are checked at once.";
    }

    /// Sign in with Apple. Off without `client_ids`.
    "auth.apple" auth_apple: AppleSignInConfig {
        client_ids: Vec<String> = "",
            "Bundle ids of the apps, and services ids of web pages, whose tokens are accepted.";
        keys_url: String = "https://appleid.apple.com/auth/keys",
            "URL of the keys with which Apple signs tokens.";
    }

    /// Sign in with Google. Off without `client_ids`.
    "auth.google" auth_google: GoogleSignInConfig {
        client_ids: Vec<String> = "",
            "Client ids whose tokens are accepted: the web client id that the apps name as server client id.";
        keys_url: String = "https://www.googleapis.com/oauth2/v3/certs",
            "URL of the keys with which Google signs tokens.";
    }

    /// Sign-in with WeChat. Off without `app_id`.
    "auth.wechat" auth_wechat: WeChatSignInConfig {
        app_id: String = "",
            "Id of the app on WeChat's open platform.";
        app_secret: Option<SecretString> = "",
            "Secret of the app.";
        base_url: String = "https://api.weixin.qq.com",
            "URL of WeChat's API.";
    }

    /// Sign-in with the phone number of the SIM card, by Aliyun's number authentication. Off without `access_key_id`.
    "auth.one_tap" auth_one_tap: OneTapConfig {
        access_key_id: String = "",
            "Access key id.";
        access_key_secret: Option<SecretString> = "",
            "Access key secret.";
        endpoint: String = "https://dypnsapi.aliyuncs.com",
            "URL of the provider's API.";
    }

    /// The SMS provider.
    "sms" sms: SmsConfig {
        provider: SmsProvider = "console",
            "`console` prints messages to stderr, for development; `aliyun`, `tencent` (Tencent Cloud) and `http` (any gateway, see `sms.http`) send them.";
        fallbacks: Vec<SmsProvider> = "",
            "Providers that are tried in this order if the one before certainly did not accept a message.";
        countries: BTreeMap<String, String> = "",
            "Other orders of providers, by the first digits of numbers in international form. Example: { \"1\" = \"http tencent\", \"852\" = \"tencent\" }.";
        endpoint: String = "https://dysmsapi.aliyuncs.com",
            "URL of the provider's API.";
        access_key_id: String = "",
            "Access key id.";
        access_key_secret: Option<SecretString> = "",
            "Access key secret.";
        sign_name: String = "",
            "Approved signature, without brackets.";
        template_code: String = "",
            "Approved template with the variable `code`.";
    }

    /// SMS by Tencent Cloud, for the provider `tencent`.
    "sms.tencent" sms_tencent: TencentSmsConfig {
        endpoint: String = "https://sms.tencentcloudapi.com",
            "URL of the provider's API.";
        region: String = "ap-guangzhou",
            "Region of the API.";
        secret_id: String = "",
            "Id of the API key.";
        secret_key: Option<SecretString> = "",
            "API key.";
        app_id: String = "",
            "Id of the SMS application (SDK `AppID`).";
        sign_name: String = "",
            "Approved signature, without brackets.";
        template_id: String = "",
            "Id of the approved template. Its first variable is the code.";
        has_minutes: bool = "false",
            "The template has a second variable: the minutes for which the code is valid.";
    }

    /// SMS by any gateway with an HTTP API, for the provider `http`.
    "sms.http" sms_http: HttpSmsConfig {
        method: String = "POST",
            "Method of the request.";
        url: String = "",
            "URL. Variables in URL, headers and body: `{phone}` (+8613800138000), `{digits}` (8613800138000), `{national}` (13800138000 for China), `{code}`, `{minutes}`.";
        headers: BTreeMap<String, SecretString> = "",
            "Headers. The content type decides how variables are escaped in the body: JSON or form.";
        body: String = "",
            "Body of the request.";
        accepted_member: String = "",
            "JSON pointer to the member of the response that tells whether the message was accepted, such as `/code`. If unset, the whole response text is compared.";
        accepted_values: Vec<String> = "",
            "Values of this member, or first words of a plain-text response, that mean accepted. If unset, every status from 200 to 299 does.";
        id_member: String = "",
            "JSON pointer to the gateway's id of the message.";
        timeout: Duration = "5 s", at_least "1 ms",
            "Timeout of one message.";
    }

    /// Email.
    "email" email: EmailConfig {
        provider: EmailProvider = "console",
            "`console` prints messages to stderr, for development; `smtp` sends them through a mail server, `http` by an HTTP API (see `email.http`).";
        fallback: Option<EmailProvider> = "",
            "The provider of a message that the first one certainly did not accept.";
        host: String = "",
            "Host name of the mail server, as in its certificate.";
        port: u16 = "0",
            "Port of the mail server; 0 for the usual one: 587 with `starttls`, 465 with `tls`, 25 with `none`.";
        tls: EmailTls = "starttls",
            "`starttls` encrypts after the greeting, `tls` from the first byte. `none` is only for a server on the same machine.";
        ca: Option<String> = "",
            "PEM file of certificates to trust in addition to the public ones, for a mail server with a private certificate.";
        username: Option<String> = "",
            "User name at the mail server. Without one the service does not authenticate.";
        password: Option<SecretString> = "",
            "Password at the mail server.";
        from: String = "",
            "Sender: an address, or `Name <address>`.";
        timeout: Duration = "20 s", at_least "1 ms",
            "Timeout for delivering one message to the server.";
        template_dir: Option<Directory> = "",
            "Directory of templates that override those of messages, such as `sign-in.en.txt`. Read at the start; see administration.md.";
    }

    /// Email by any provider with an HTTP API, for the provider `http`.
    "email.http" email_http: HttpEmailConfig {
        method: String = "POST",
            "Method of the request.";
        url: String = "",
            "URL. Variables in URL, headers and body: `{from}`, `{to}`, `{subject}`, `{text}`, `{html}`.";
        headers: BTreeMap<String, SecretString> = "",
            "Headers, such as the one with the API key. The content type decides how variables are escaped in the body: JSON or form.";
        body: String = "",
            "Body of the request.";
        accepted_member: String = "",
            "JSON pointer to the member of the response that tells whether the message was accepted. If unset, the whole response text is compared.";
        accepted_values: Vec<String> = "",
            "Values of this member, or first words of a plain-text response, that mean accepted. If unset, every status from 200 to 299 does.";
        id_member: String = "",
            "JSON pointer to the provider's id of the message.";
    }

    /// Pushes of notifications to phones. Off until a service is configured.
    "push" push: PushConfig {
        shows_body: bool = "true",
            "Send title and text. If off, only the title leaves the server.";
        max_age: Duration = "1 day", at_least "1 minute",
            "Time after which a push that could not be sent is given up.";
        devices_per_user: u32 = "10", at_least "1",
            "Apps of one user that get pushes. One more replaces the one that registered first.";
        timeout: Duration = "10 s", at_least "1 ms",
            "Timeout of one call to a push service.";
    }

    /// Pushes to iPhones. Off without `topic`.
    "push.apns" push_apns: ApnsConfig {
        topic: String = "",
            "Bundle id of the app.";
        team_id: String = "",
            "Id of the developer team.";
        key_id: String = "",
            "Id of the key for the push service.";
        private_key: Option<SecretString> = "",
            "The key: the text of the `.p8` file.";
        base_url: String = "https://api.push.apple.com",
            "URL of the service. Apps built for development have tokens of `https://api.sandbox.push.apple.com`.";
    }

    /// Pushes by Firebase Cloud Messaging. Off without `service_account`.
    "push.fcm" push_fcm: FcmConfig {
        service_account: Option<SecretString> = "",
            "The service account's key file: its text, which is JSON.";
        base_url: String = "https://fcm.googleapis.com",
            "URL of the service.";
        token_url: Option<String> = "",
            "Token endpoint in place of the one in the key file, for tests.";
    }

    /// Pushes by any service with an HTTP API. Off without `url`.
    "push.http" push_http: HttpPushConfig {
        method: String = "POST",
            "Method of the request.";
        url: String = "",
            "URL. Variables in URL, headers and body: `{token}`, `{title}`, `{body}`, `{kind}`, `{notification}` (its id), `{unread}`, `{lifetime}` (seconds) and `{id}`, the same for each attempt. Status 404 and 410 mean that the token is dead.";
        headers: BTreeMap<String, SecretString> = "",
            "Headers, such as the one with the API key. The content type decides how variables are escaped in the body: JSON or form.";
        body: String = "",
            "Body of the request.";
        accepted_member: String = "",
            "JSON pointer to the member of the response that tells whether the message was accepted. If unset, the whole response text is compared.";
        accepted_values: Vec<String> = "",
            "Values of this member, or first words of a plain-text response, that mean accepted. If unset, every status from 200 to 299 does.";
    }

    /// Content moderation by an external service, beside the word list. `yarrow moderation switch` selects which one decides.
    "moderation" moderation: ModerationConfig {
        provider: ModerationProvider = "none",
            "The external moderation service: `none`, `aliyun`, `http` (a judge of your own) or `llm` (a language model with a fixed rubric).";
        endpoint: String = "https://green-cip.cn-shanghai.aliyuncs.com",
            "URL of the provider's API.";
        backup_endpoint: Option<String> = "",
            "URL in another region, tried once if the first one fails.";
        access_key_id: String = "",
            "Access key id.";
        access_key_secret: Option<SecretString> = "",
            "Access key secret.";
        nickname_service: String = "nickname_detection_pro",
            "The provider's service code for nicknames.";
        text_service: String = "comment_detection_pro",
            "The provider's service code for signatures and questions.";
        answer_service: String = "llm_response_moderation",
            "The provider's service code for model responses.";
        ignored_labels: Vec<String> = "inappropriate_superstition, religion_t, religion_b",
            "Labels of the provider that are ignored. Divination itself is what users of this app ask about.";
        refuse_medium: bool = "true",
            "Reject texts of medium risk as well as those of high risk.";
        judge_url: String = "",
            "URL of the provider `http`, which gets a signed POST for each text; see administration.md.";
        judge_secret: Option<SecretString> = "",
            "Secret under which these requests are signed.";
        llm_base_url: String = "https://api.openai.com/v1",
            "Base URL of the provider `llm`, an OpenAI-compatible server, up to but without `/chat/completions`.";
        llm_api_key: Option<SecretString> = "",
            "API key of this server.";
        llm_model: String = "",
            "Model that judges. Give `moderation.timeout` enough time for it.";
        llm_texts_per_day: u32 = "10000",
            "Texts per day (UTC) that this process sends to the model. Texts that it has judged lately are not sent again.";
        connect_timeout: Duration = "1 s", at_least "1 ms",
            "Connect timeout.";
        timeout: Duration = "3 s", at_least "1 ms",
            "Timeout of one call, including its retry. A long text is split and takes several calls.";
        max_concurrent_calls: u32 = "32", at_least "1",
            "Maximum number of concurrent calls to the provider, an eighth of them for one user. Further texts wait for up to `moderation.timeout`, then get 503, also with the fallback on.";
        texts_per_user_hour: u32 = "1200",
            "Texts per user that are sent to the provider in an hour, counted from the first; then 429. Model responses do not count.";
        shadow_sample_rate: f64 = "0",
            "Share of texts, 0 to 1, that are also sent to the service that does not decide, after the response. Disagreements are recorded.";
        disagreements: u32 = "1000", at_least "1",
            "Maximum number of recorded disagreements. The oldest are deleted first.";
        screen_answers: bool = "false",
            "Moderate model responses as well. Streams are then sent sentence by sentence.";
        contact_numbers: bool = "true",
            "Reject nicknames and signatures that contain a contact: a phone number, an account of QQ, WeChat or Telegram, a URL or a mail address, in any script. Applies only when the word list decides.";
        assigned_nicknames: Vec<String> = "用户, 手机用户, 微信用户, 新用户, 游客, 易友, user, user_, guest",
            "Words that apps put before a number in the nickname of a new user, such as 用户12345678, besides `brand.name`. These nicknames are not contact numbers.";
        slang: bool = "true",
            "Look for slang, abbreviations and cover words of abuse, gambling, pornography, fraud and contact as well, besides the word list. Texts with them are reviewed unless `moderation.match_rules` says otherwise for words of severity `low`.";
        match_rules: Vec<MatchRule> = "",
            "Rules for texts with a listed word. A rule names a type or tag of the word, the way it was found and the content type; `any` stands for all. A severity (`low`, `medium`, `high`) may follow. The action is `block`, `review` (the text passes and moderators see it) or `mask` (the word is replaced by ＊). The first rule that applies decides. By default words of severity `low` and the ways `fuzzy`, `initial`, `shape` and `reversed` are reviewed and all others blocked. Example: [\"ads any question: mask\", \"any sound nickname: review\", \"any any any high: block\"].";
        suspension_rules: Vec<SuspensionRule> = "",
            "Rules that suspend users after rejected texts. Each is the number and type of the texts, or `any`, with a time, and a scope with a length; the scope is `account`, `nickname` (no new nickname) or `review` (moderators see every text). Example: [\"3 gambling in 7 days: account for 30 days\", \"5 any in 30 days: nickname for 30 days\"].";
    }

    /// The language model for interpretations and chat.
    "llm" llm: LlmConfig {
        provider: LlmProvider = "builtin",
            "`builtin` interprets offline by rules; `openai` calls an OpenAI-compatible server.";
        base_url: String = "https://api.openai.com/v1",
            "Base URL of the server, up to but without `/chat/completions`.";
        api_key: Option<SecretString> = "",
            "API key of the server, sent as a bearer token.";
        model: String = "",
            "Name of the model.";
        temperature: Option<f64> = "",
            "Sampling temperature, 0 to 2. If unset, the model's default.";
        max_tokens: u32 = "2000", at_least "1",
            "Maximum number of tokens in a response.";
        connect_timeout: Duration = "5 s", at_least "1 ms",
            "Connect timeout.";
        first_byte_timeout: Duration = "30 s", at_least "1 ms",
            "Timeout until a streamed response begins.";
        idle_timeout: Duration = "30 s", at_least "1 ms",
            "Maximum time between two chunks of a streamed response; at least `first_byte_timeout`.";
        total_timeout: Duration = "120 s", at_least "1 ms",
            "Timeout of the whole response, including a retry and a failover.";
        max_retry_delay: Duration = "10 s",
            "If a server asks for a longer delay than this, the call is not retried.";
        max_response_bytes: Bytes = "256 KiB", at_least "1 KiB",
            "Maximum size of a response, including its reasoning. A stream may have 64 times as many bytes in total.";
        breaker_threshold: u32 = "5", at_least "1",
            "Consecutive failures that open the circuit breaker.";
        breaker_pause: Duration = "30 s",
            "Time for which the open circuit breaker rejects calls before it lets one through.";
        calls_per_user: u32 = "2", at_least "1",
            "Model calls that one user may have running or waiting.";
        calls_per_user_hour: u32 = "600",
            "Interpretations, chat turns and rejected texts of one user in a rolling hour; then 429.";
        interpretations_per_session: u32 = "3",
            "Maximum number of interpretations of one session, including the first.";
        max_concurrent_calls: u32 = "32", at_least "1",
            "Maximum number of concurrent model calls. Each takes a thread.";
        queue: u32 = "32",
            "Maximum number of waiting model calls.";
        queue_timeout: Duration = "5 s",
            "Maximum time that a call waits in the queue.";
        finish_after_disconnect: Duration = "2 minutes",
            "Time for which the interpretation of a session goes on after its last listener has left; 0 cancels it at once.";
        heartbeat: Duration = "15 s", at_least "1 ms",
            "Time without an event after which a stream sends a comment, so that proxies keep the connection open.";
        chat_messages: u32 = "40", at_least "1",
            "Maximum number of messages in one conversation.";
        drop_system_messages: bool = "false",
            "Leave out messages of the role `system` that an app sends in a conversation, instead of rejecting them. The server's instructions apply either way.";
        prices: BTreeMap<String, TokenPrice> = "",
            "Price of a million input and output tokens by model name. Example: { \"deepseek-chat\" = \"2.00/8.00\" }.";
        currency: String = "CNY",
            "Currency of the prices, for display.";
        tokens_per_day: Option<u64> = "",
            "Input and output tokens per day in total; then 503 `budget_spent`. Warnings are logged at 50 % and 80 %.";
        cost_per_day: Option<MicroAmount> = "",
            "Cost per day in total.";
        user_tokens_per_day: Option<u64> = "",
            "Tokens per day for one user.";
        user_cost_per_day: Option<MicroAmount> = "",
            "Cost per day for one user.";
        prompt_dir: Option<Directory> = "",
            "Directory of templates that override the instructions of the model, such as `interpretation.en.txt`. Read at the start; see administration.md.";
    }

    /// Help for questions on which no oracle may give a verdict.
    "help" help: HelpConfig {
        template_dir: Option<Directory> = "",
            "Directory of templates that override the help texts, such as `self_harm.en.txt`. Read at the start; see administration.md.";
        checked: bool = "false",
            "True once an operator has checked the numbers in the help texts. Until then `yarrow doctor` reminds of it.";
    }

    /// A second model server, used when the first one fails.
    "llm.fallback" llm_fallback: LlmFallbackConfig {
        base_url: Option<String> = "",
            "Base URL of an OpenAI-compatible server, up to but without `/chat/completions`. If unset, there is no fallback.";
        api_key: Option<SecretString> = "",
            "API key of the server, sent as a bearer token.";
        model: String = "",
            "Name of the model.";
    }

    /// Coins, the balance of the first API generation.
    "coins" coins: CoinsConfig {
        initial: u32 = "0",
            "Coins of a new user.";
        consume: u32 = "1", at_least "1",
            "Coins that one use costs.";
    }

    /// The ledger of both balances.
    "ledger" ledger: LedgerConfig {
        daily_repair: bool = "false",
            "The daily verification also repairs balances that differ from consistent entries, as `fix` does, and reactivates these accounts. The alert `ledger_repaired` says how many.";
    }

    /// Points, the balance of the current API generation.
    "points" points: PointsConfig {
        signup_bonus: u32 = "100",
            "Points of a new user, once per email address.";
        cast: u32 = "10",
            "Points that a casting costs.";
        another_interpretation: u32 = "0",
            "Points that each further interpretation of the same session costs. The first one is part of the casting.";
        per_coin: u32 = "0",
            "Points that a user gets for one coin. 0 turns the exchange off.";
        invite_bonus: u32 = "20",
            "Points for the user whose invite code is redeemed.";
        invitee_bonus: u32 = "20",
            "Points for the new user who redeems an invite code.";
        rewarded_invites: u32 = "50",
            "Maximum number of invites that earn one user points.";
        invite_window: Duration = "7 days",
            "Time after registration in which an invite code can be redeemed.";
    }

    /// Payments.
    "payment" payment: PaymentConfig {
        gateway: PaymentProvider = "sandbox",
            "The channel of payments if `channels` is empty. `sandbox` is a built-in provider whose payments cost nothing, for development; all others charge real money.";
        sandbox_buyers: bool = "false",
            "`true`: users may pay their own orders in the sandbox (`POST /api/v1/orders/{orderNo}/sandbox-pay`), for the development of apps.";
        channels: Vec<PaymentProvider> = "",
            "The channels that take new orders, such as `alipay, wechat`. An order that names none uses the first. Channels that have settings and are not listed here only serve their old orders.";
        app_id: String = "",
            "Application id at the provider.";
        seller_id: Option<String> = "",
            "Seller id: 2088 and 12 digits. If set, callbacks for another seller are rejected.";
        private_key: Option<SecretString> = "",
            "The application's RSA private key, PKCS#1 or PKCS#8, as PEM or one line of base64.";
        alipay_public_key: String = "",
            "Alipay's RSA public key, not that of the application.";
        gateway_url: String = "https://openapi.alipay.com/gateway.do",
            "URL of the provider's API.";
        notify_url: Option<String> = "",
            "URL to which the provider sends payment callbacks. If unset, `/payment/notify` under `server.public_url`.";
        packages: Packages = "6.00=60, 30.00=330, 68.00=780, 128.00=1500",
            "The price list of coins: yuan, and the coins that they buy. `yarrow products` changes it while the server runs.";
        point_packages: Packages = "6.00=600, 30.00=3300, 68.00=7800, 128.00=15000",
            "The price list of points: yuan, and the points that they buy.";
        order_reuse: Duration = "15 minutes",
            "Time for which a user gets the same unpaid order again for the same package.";
        order_lifetime: Duration = "30 minutes", at_least "1 ms",
            "Time in which an order can be paid at the provider.";
        checks: Vec<Duration> = "1 minute, 5 minutes, 15 minutes, 1 hour, 6 hours, 25 hours",
            "Ages at which the provider is asked about an unpaid order. The last check closes the order.";
        call_timeout: Duration = "15 s", at_least "1 ms",
            "Timeout of one call to the provider.";
        ask_again_after: Duration = "2 s",
            "Minimum time between two queries to the provider that a user's app can cause for one order.";
        max_concurrent_calls: u32 = "16", at_least "1",
            "Maximum number of concurrent calls to the provider on behalf of users.";
        refused_callbacks: u32 = "1000",
            "Maximum number of recorded payment callbacks without a valid signature. The oldest are deleted first.";
    }

    /// Purchases in Apple's App Store. Off without `bundle_id`.
    "payment.apple" payment_apple: PaymentAppleConfig {
        bundle_id: String = "",
            "Bundle id of the app, such as `com.example.app`. Other apps' purchases are refused.";
        app_apple_id: Option<u64> = "",
            "The app's number in the store. If set, production notifications about another app are refused.";
        environments: Vec<String> = "production",
            "Environments whose purchases are accepted: `production`, `sandbox` or both. Apple's reviewers buy in the sandbox.";
        testers: Vec<String> = "",
            "Users whose purchases in the sandbox are credited: ids, email addresses or phone numbers, such as those of the review accounts. These coins are excluded from revenue.";
        issuer_id: String = "",
            "Issuer id of the in-app purchase key, from App Store Connect.";
        key_id: String = "",
            "Id of the in-app purchase key.";
        private_key: Option<SecretString> = "",
            "The in-app purchase key: the text of the `.p8` file.";
        allow_missing_token: bool = "false",
            "Credit a purchase without an account token to the user who reports it: promotions, offer codes, old versions of the app.";
        base_url: String = "https://api.storekit.apple.com",
            "URL of the store's server API.";
        sandbox_base_url: String = "https://api.storekit-sandbox.apple.com",
            "URL of the server API of the sandbox.";
        root: Option<String> = "",
            "Root certificate as PEM in place of Apple's, for tests.";
    }

    /// Purchases in Google Play. Off without `package_name`.
    "payment.google" payment_google: PaymentGoogleConfig {
        package_name: String = "",
            "Package name of the app, such as `com.example.app`.";
        service_account: Option<SecretString> = "",
            "The service account's key file: its text, which is JSON.";
        push_service_account: String = "",
            "Email address of the service account that signs the pushed notifications.";
        push_audience: Option<String> = "",
            "Audience of the push subscription. If unset, `/payment/notify/google` under `server.public_url`.";
        testers: Vec<String> = "",
            "Users whose test purchases are credited: ids, email addresses or phone numbers. These coins are excluded from revenue.";
        allow_missing_token: bool = "false",
            "Credit a purchase without an account token to the user who reports it.";
        base_url: String = "https://androidpublisher.googleapis.com",
            "URL of the publisher API.";
        token_url: Option<String> = "",
            "Token endpoint in place of the one in the key file, for tests.";
        keys_url: String = "https://www.googleapis.com/oauth2/v3/certs",
            "URL of the keys with which Google signs notifications.";
    }

    /// Alipay in certificate mode.
    "payment.alipay" payment_alipay: AlipayConfig {
        app_certificate: Option<String> = "",
            "File `appCertPublicKey_….crt`: the certificate of `payment.private_key`. Without these files the app is in key mode.";
        alipay_certificate: Option<String> = "",
            "File `alipayCertPublicKey_RSA2.crt`: the certificate of Alipay's key. It replaces `payment.alipay_public_key`.";
        root_certificates: Option<String> = "",
            "File `alipayRootCert.crt`.";
    }

    /// WeChat Pay, version 3.
    "payment.wechat" payment_wechat: WeChatConfig {
        app_id: String = "",
            "Id of the app on WeChat's open platform, bound to the merchant.";
        merchant_id: String = "",
            "Merchant number. If set, the channel is configured.";
        merchant_serial: String = "",
            "Serial number of the merchant's API certificate, in hexadecimal digits.";
        private_key: Option<SecretString> = "",
            "The merchant's private key for the API, as PEM or one line of base64.";
        api_v3_key: Option<SecretString> = "",
            "The `APIv3` key: 32 characters. It opens notifications.";
        public_key_id: Option<String> = "",
            "Id of WeChat Pay's public key, `PUB_KEY_ID_` and digits, for merchants in public-key mode.";
        public_key: Option<String> = "",
            "PEM file with the public key of `public_key_id`.";
        platform_certificates: Option<String> = "",
            "PEM file with platform certificates. Without it and without a public key they are fetched.";
        base_url: String = "https://api.mch.weixin.qq.com",
            "URL of the provider's API.";
        notify_url: Option<String> = "",
            "URL for notifications, with https. If unset, `/payment/notify/wechat` under `server.public_url`.";
    }

    /// Stripe Checkout.
    "payment.stripe" payment_stripe: StripeConfig {
        secret_key: Option<SecretString> = "",
            "Secret or restricted key. If set, the channel is configured.";
        webhook_secret: Option<SecretString> = "",
            "Signing secret of the webhook `/payment/notify/stripe`, which begins with `whsec_`. It needs the events checkout.session.*, charge.refunded, charge.dispute.created and charge.dispute.closed.";
        old_webhook_secret: Option<SecretString> = "",
            "The former signing secret, while it is replaced.";
        currency: Currency = "CNY",
            "Currency of the prices, with two decimals.";
        prices: Prices = "",
            "Price of each product in `currency`, by its price in yuan, such as `6.00 = 0.99`. Products without a price are not sold. Not needed for CNY.";
        success_url: String = "",
            "Page to which the buyer returns after the payment.";
        cancel_url: String = "",
            "Page to which the buyer returns without a payment.";
        base_url: String = "https://api.stripe.com",
            "URL of the provider's API.";
    }

    /// Notifications in the app.
    "notifications" notifications: NotificationsConfig {
        per_user: u32 = "500", at_least "1",
            "Maximum number of notifications kept for one user, not counting broadcasts. The oldest are deleted first.";
        streams: u32 = "10000", at_least "1",
            "Maximum number of open notification streams. Each is a connection: see `limits.connections`.";
        streams_per_user: u32 = "4", at_least "1",
            "Maximum number of open notification streams of one user.";
        url_hosts: Vec<HostPattern> = "",
            "Hosts that an `open_url` notification may link to; `*.example.com` allows all subdomains. If empty, no links are allowed.";
    }

    /// Administrators.
    "admin" admin: AdminConfig {
        session_lifetime: Duration = "8 hours", at_least "1 ms",
            "Maximum lifetime of an administrator's session.";
        session_idle: Duration = "30 minutes", at_least "1 ms",
            "Time without a request after which an administrator's session ends.";
        attempts: u32 = "3", at_least "1",
            "Failed sign-ins per name and per client address in `attempts_window`.";
        attempts_window: Duration = "5 minutes", at_least "1 ms",
            "Time window in which failed sign-ins are counted.";
        support_grant: u32 = "100",
            "Maximum number of coins that the role `support` may grant at once.";
        support_grants_daily: u32 = "1000",
            "Maximum number of coins that one administrator with the role `support` may grant in 24 hours.";
    }

    /// Thresholds above which a client address is reported as suspicious. 0 turns a reason off.
    "suspicion" suspicion: SuspicionConfig {
        failed_sign_ins: u32 = "10",
            "Failed sign-ins.";
        failure_share: u32 = "50",
            "Percentage of failed requests, if there were at least `requests`.";
        requests: u32 = "20",
            "Minimum number of requests for `failure_share`.";
        distinct_users: u32 = "20",
            "Number of different users signed in from the address.";
        request_rate: u32 = "300",
            "Requests in one minute.";
    }

    /// Limits of requests and stored data.
    "limits" limits: LimitsConfig {
        body: Bytes = "64 KiB", at_least "1 KiB",
            "Maximum body size of requests without a limit of their own.";
        auth_body: Bytes = "4 KiB", at_least "1 KiB",
            "Maximum body size of sign-in requests.";
        history_body: Bytes = "256 KiB", at_least "1 KiB",
            "Maximum body size when saving a casting.";
        history_batch_body: Bytes = "2 MiB", at_least "1 KiB",
            "Maximum body size when saving several castings.";
        interpretation_body: Bytes = "64 KiB", at_least "1 KiB",
            "Maximum body size when requesting an interpretation.";
        batch_body: Bytes = "512 KiB", at_least "1 KiB",
            "Maximum body size of a batch of texts.";
        chat_body: Bytes = "32 KiB", at_least "1 KiB",
            "Maximum body size of a conversation.";
        notify_body: Bytes = "16 KiB", at_least "1 KiB",
            "Maximum body size of a payment callback.";
        channel_notify_body: Bytes = "64 KiB", at_least "1 KiB",
            "Maximum body size of a payment callback at `/payment/notify/{channel}`.";
        notify_timeout: Duration = "2 s", at_least "1 ms",
            "Time in which a payment callback is answered.";
        nickname: u32 = "20", at_least "1",
            "Maximum characters of a nickname.";
        signature: u32 = "100", at_least "1",
            "Maximum characters of a signature.";
        question: u32 = "200", at_least "1",
            "Maximum characters of a question.";
        session_title: u32 = "60", at_least "1",
            "Maximum characters of a session's title.";
        session_note: u32 = "1000", at_least "1",
            "Maximum characters of a session's note.";
        word: u32 = "50", at_least "1",
            "Maximum characters of a sensitive word.";
        label: u32 = "64", at_least "1",
            "Maximum characters of a question type or of a client's record id.";
        feedback_body: Bytes = "32 KiB", at_least "1 KiB",
            "Maximum body size of feedback.";
        feedback: u32 = "1000", at_least "1",
            "Maximum characters of feedback.";
        rating_note: u32 = "500", at_least "1",
            "Maximum characters of the note with a rating.";
        feedback_per_user: u32 = "20",
            "Feedback messages from one user in a rolling hour.";
        feedback_per_client: u32 = "5",
            "Feedback messages from one client address (IPv6: its /64) in a rolling hour without signing in.";
        notification_title: u32 = "100", at_least "1",
            "Maximum characters of a notification's title.";
        notification_text: u32 = "2000", at_least "1",
            "Maximum characters of a notification's text.";
        json_data: Bytes = "64 KiB", at_least "1 KiB",
            "Maximum size of `jsonData` of a casting.";
        ai_result: Bytes = "32 KiB", at_least "1 KiB",
            "Maximum size of `aiResult` of a casting.";
        batch: u32 = "100", at_least "1",
            "Maximum number of items in one batch.";
        history_records: u32 = "5000", at_least "1",
            "Maximum number of history records per user.";
        history_size: Bytes = "64 MiB", at_least "1 KiB",
            "Maximum total size of the history records of one user, including deactivated ones.";
        free_responses: u32 = "100", at_least "1",
            "Maximum number of stored responses per caller to requests with an Idempotency-Key that changed nothing. The oldest are deleted.";
        interpretation_records: u32 = "5000", at_least "1",
            "Records of interpretations, conversations and rejected texts kept per user; at least `llm.calls_per_user_hour`. One in ten may have more than 4,000 characters of `divinationData`.";
        page_size: u32 = "20", at_least "1",
            "Default number of items on a page.";
        first_page: u32 = "1",
            "Number of the first page of numbered lists: 1, or 0 for apps that count pages from 0.";
        page_size_max: u32 = "100", at_least "1",
            "Maximum number of items on a page.";
        time_zone: TimeZone = "Asia/Shanghai",
            "Time zone of dates without one.";
        header_timeout: Duration = "10 s", at_least "1 ms",
            "Timeout for receiving the head of a request, from its first byte.";
        idle_timeout: Duration = "75 s", at_least "1 ms",
            "Time that a connection may stay idle between requests.";
        body_timeout: Duration = "30 s", at_least "1 ms",
            "Timeout for receiving the body of a request.";
        write_timeout: Duration = "15 s", at_least "1 ms",
            "Maximum time that a write waits for the disk; then 503 `overloaded`.";
        drain_timeout: Duration = "25 s",
            "Time for running requests to finish when the service stops.";
        connections: u32 = "4096", at_least "1",
            "Maximum number of open connections. Separate listeners for administrators and metrics are counted separately.";
        connections_per_client: u32 = "256", at_least "1",
            "Maximum number of open connections from one address (IPv6: its /64). Trusted proxies are exempt.";
        held_bytes: Bytes = "112 MiB", at_least "16 KiB",
            "Maximum number of bytes in memory for running requests with a valid token: bodies that arrive and responses until they are read; then 503.";
        held_bytes_per_client: Bytes = "48 MiB", at_least "16 KiB",
            "The part of them for one client address (IPv6: its /64).";
        held_bytes_per_user: Bytes = "32 MiB", at_least "16 KiB",
            "The part of them for one user, administrator or API key.";
        anonymous_bytes: Bytes = "24 MiB", at_least "16 KiB",
            "Maximum number of bytes in memory for running requests without a valid token; then 503.";
        anonymous_bytes_per_client: Bytes = "8 MiB", at_least "16 KiB",
            "The part of them for one client address (IPv6: its /64).";
        requests: u32 = "1024", at_least "1",
            "Maximum number of concurrent requests; then 503.";
        slow_query: Duration = "250 ms",
            "Database operations that take longer are logged as a warning.";
        slow_request: Duration = "1 s",
            "Requests that take longer are logged as a warning.";
    }

    /// Retention periods.
    "retention" retention: RetentionConfig {
        access_log: Duration = "180 days",
            "Network log entries.";
        code_sends: Duration = "2 days", at_least "1 day",
            "Records of sent codes; at least one day, because limits are counted from them.";
        code_messages: Duration = "7 days",
            "Requests for codes with their outcomes, for support.";
        deactivated_history: Duration = "30 days",
            "History records after the user deactivated them.";
        deletions: Duration = "90 days", at_least "1 day",
            "Ids of deleted sessions, history records and notifications. An app that was offline for longer loads everything anew.";
        parked_points: Duration = "730 days",
            "Points of a deleted account, kept for its email address.";
        expired_notifications: Duration = "30 days",
            "Expired notifications. Only administrators see them.";
        violations: Duration = "180 days",
            "Records of rejected texts, of texts in review and of disagreements between the moderation services.";
        webhook_events: Duration = "30 days",
            "Events of webhooks, delivered or not.";
        payment_records: Duration = "1095 days",
            "Payment records. Purging them keeps those that are younger.";
        idempotency_keys: Duration = "72 hours",
            "Stored responses of requests with an Idempotency-Key. A repeated request gets the stored response for this long.";
    }

    /// The network log.
    "network_log" network_log: NetworkLogConfig {
        max_size: Bytes = "4 GiB", at_least "1 MiB",
            "Maximum size of the network log. An entry takes 100 to 150 bytes. Beyond this size the oldest entries are deleted.";
    }

    /// The database.
    "database" database: DatabaseConfig {
        url: Option<SecretString> = "", flag "database",
            "Address of a PostgreSQL database, such as `postgres://user:password@host/name`. If unset, a SQLite file in the data directory.";
        mmap_size: Bytes = "0 B",
            "Size of the part of the file that is mapped into memory. Faster on large files, but an I/O error then ends the process.";
        cache: Bytes = "8 MiB",
            "Page cache of each connection.";
        write_queue: u32 = "4096", at_least "1",
            "Maximum number of waiting writes; then 503.";
        commit_size: u32 = "512", at_least "1",
            "Maximum number of writes in one commit. With 1 each is synced separately, which is several times slower under load.";
        long_reads: u32 = "4", at_least "1",
            "Maximum number of concurrent long reads: exports, checks, background jobs.";
        reports: u32 = "4", at_least "1",
            "Maximum number of concurrent reports and lists for administrators. Further ones wait.";
        check_every: Duration = "1 day",
            "Interval of the integrity check of the whole file; the first is soon after the start. A backup in that time counts as a check. 0 s turns it off.";
    }

    /// Backups.
    "backup" backup: BackupConfig {
        directory: Option<Directory> = "",
            "Directory of backups. If unset, `backups` in the data directory. Another disk is better.";
        every: Duration = "1 hour",
            "Interval of automatic backups. 0 s turns them off.";
        missed: u32 = "3",
            "Number of intervals after which a missing backup is reported.";
        keep_hourly: u32 = "24", at_least "1",
            "Number of newest backups to keep.";
        keep_daily: u32 = "30",
            "Number of days for which the newest backup of each day is kept, and every backup made on request.";
        keep_size: Bytes = "10 GiB",
            "Maximum disk space of all backups: half for the newest, the rest for one a day. The oldest of each are deleted first; the newest two are always kept.";
        free_space: Bytes = "512 MiB",
            "Free disk space that must remain after a backup is made, downloaded or verified.";
        follow: Duration = "10 s",
            "Interval of continuous backup to the bucket, if there is one: changed pages of the database. 0 s turns it off.";
        follow_keep: Duration = "48 hours", at_least "1 hour",
            "Time for which changed pages stay in the bucket, and back to which `yarrow restore --latest --at` can go.";
        s3_endpoint: Option<String> = "",
            "URL of an S3-compatible server to which backups are uploaded, with the same retention. If unset, none are.";
        s3_bucket: String = "",
            "Name of the bucket.";
        s3_region: String = "us-east-1",
            "Region of the bucket, used in signatures.";
        s3_addressing: S3Addressing = "path",
            "Position of the bucket name in URLs: `path` or `host`.";
        s3_prefix: String = "yarrow/",
            "Prefix of object names in the bucket.";
        s3_access_key_id: String = "",
            "Access key id.";
        s3_secret_access_key: Option<SecretString> = "",
            "Secret access key.";
    }

    /// Prometheus metrics.
    "metrics" metrics: MetricsConfig {
        listen: Option<SocketAddr> = "",
            "Address and port of `/metrics`, for example 127.0.0.1:9180. Off if unset. Anybody who can connect can read it.";
    }

    /// Alerts.
    "alerts" alerts: AlertsConfig {
        webhook_url: Option<SecretString> = "",
            "URL to which alerts are posted as JSON.";
        mail_to: Vec<EmailAddress> = "",
            "Email addresses that receive alerts.";
        webhook_secret: Option<SecretString> = "",
            "Key of the HMAC-SHA-256 of the body, sent in `X-Yarrow-Signature`.";
        remind_after: Duration = "1 day",
            "Time after which an alert that is still active is repeated. 0 s turns repetition off.";
        disk_free_percent: u32 = "10",
            "Percentage of free disk space below which an alert is raised.";
    }

    /// Events for the operator's systems, such as users, orders and feedback. Off without `url`.
    "webhooks" webhooks: WebhooksConfig {
        url: Option<SecretString> = "",
            "URL to which events are posted as JSON, signed by the Standard Webhooks specification.";
        secrets: Vec<SecretString> = "",
            "Keys of the signatures: each `whsec_` and at least 24 random bytes in base64. While receivers change to a new key, list both.";
        with_texts: bool = "false",
            "Send what users wrote: feedback, and masked texts of violations. If off, events hold ids only.";
        timeout: Duration = "10 s", at_least "1 ms",
            "Timeout of one attempt.";
        retry_for: Duration = "3 days", at_least "1 minute",
            "Time after which an event that was not accepted is given up. It can be replayed.";
    }

    /// Log output on stderr.
    "log" log: LogConfig {
        format: LogFormat = "text", flag "log-format",
            "`text` for people, `json` for machines.";
        level: String = "info", flag "log-level",
            "error, warn, info, debug or trace, or a filter such as `info,yarrow::http=debug`.";
    }
}
