//! The payment channels: one gateway each, with its own circuit breaker.
//!
//! A channel that takes no new orders stays configured, so that its old orders can be queried and refunded.

use std::{collections::BTreeMap, sync::Arc};

use secrecy::ExposeSecret;

use super::{order::Order, sandbox::trades::TradeStore};
use crate::{
    config::{Config, PaymentProvider, configuration_error},
    core::Core,
    error::{Code, Error, Fault, FieldCode, Result},
    providers::{
        breaker::CircuitBreaker,
        payment::{
            PaymentGateway, SettingFault,
            alipay::{self, Alipay, AlipayCertificateTexts},
            gateway::{StripeGateway, StripeGatewaySettings},
            sandbox::Sandbox,
            stripe::StripeSettings,
            wechat::{WeChatPay, WeChatSettings},
        },
    },
};

/// A clock in epoch milliseconds for a gateway.
pub type GatewayClock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A gateway with its circuit breaker.
pub struct PaymentChannel {
    pub gateway: Arc<dyn PaymentGateway>,
    pub breaker: Arc<CircuitBreaker>,
    /// True if it takes new orders.
    pub sells: bool,
}

/// The configured channels by name.
pub struct PaymentChannels {
    by_name: BTreeMap<&'static str, PaymentChannel>,
    /// The channel of orders that name none.
    default: &'static str,
}

/// The gateways that need more than the trait.
#[derive(Default)]
pub(super) struct SpecialGateways {
    /// The simulated provider behind the sandbox gateway.
    pub(super) sandbox: Option<Arc<Sandbox>>,
    pub(super) wechat: Option<Arc<WeChatPay>>,
}

impl PaymentChannels {
    /// Builds all configured gateways. `sandbox_key` provides the sandbox's signing key; `certificates` are stored ones
    /// of WeChat Pay, as PEM.
    ///
    /// # Errors
    /// `configuration` with all faults of the gateways' settings.
    pub(super) fn open(
        core: &Core,
        sandbox_key: impl FnOnce() -> Result<Vec<u8>>,
        certificates: &str,
    ) -> Result<(Self, SpecialGateways)> {
        let config = &core.config;
        let clock = core.clock.clone();
        let now: GatewayClock = Arc::new(move || clock.now().0);
        let (mut by_name, mut special, mut faults) = (BTreeMap::new(), SpecialGateways::default(), Vec::new());
        let for_sale = config.payment_channels();
        let mut add = |gateway: Arc<dyn PaymentGateway>| {
            let name = gateway.name();
            let breaker_name = if name == for_sale[0].name() { "payment" } else { breaker_name(name) };
            let sells = for_sale.iter().any(|provider| provider.name() == name);
            let breaker = Arc::new(CircuitBreaker::with_defaults(breaker_name));
            by_name.insert(name, PaymentChannel { gateway, breaker, sells });
        };
        if for_sale.contains(&PaymentProvider::Sandbox) {
            let trades = Arc::new(TradeStore::new(core.store.clone()));
            let clock = Arc::clone(&now);
            let made = Sandbox::new(&sandbox_key()?, &notify_url(config), trades, Box::new(move || clock()));
            let made = Arc::new(made.map_err(|error| Error::new(Code::Configuration).caused_by(error))?);
            add(Arc::clone(&made) as _);
            special.sandbox = Some(made);
        }
        for provider in configured(config) {
            match built(config, provider, &now, certificates) {
                Ok(built) => {
                    add(built.gateway());
                    if let BuiltGateway::WeChat(gateway) = built {
                        special.wechat = Some(gateway);
                    }
                }
                Err(found) => faults.extend(found),
            }
        }
        if !faults.is_empty() {
            return Err(configuration_error(&faults));
        }
        Ok((Self { by_name, default: for_sale[0].name() }, special))
    }

    /// Returns all channels, also those for old orders only.
    pub fn all(&self) -> impl Iterator<Item = &PaymentChannel> {
        self.by_name.values()
    }

    pub fn find(&self, name: &str) -> Option<&PaymentChannel> {
        self.by_name.get(name)
    }

    /// Returns the channels that take new orders, the default first.
    pub fn for_sale(&self) -> Vec<&PaymentChannel> {
        let mut sold: Vec<_> = self.all().filter(|channel| channel.sells).collect();
        sold.sort_by_key(|channel| channel.gateway.name() != self.default);
        sold
    }

    /// Returns the named channel for a new order, or the default one.
    ///
    /// # Errors
    /// `invalid_parameters` for a channel that takes no new orders.
    pub fn for_new_order(&self, name: Option<&str>) -> Result<&PaymentChannel> {
        let found = self.find(name.unwrap_or(self.default)).filter(|channel| channel.sells);
        found.ok_or_else(|| {
            let names: Vec<_> = self.for_sale().into_iter().map(|channel| channel.gateway.name()).collect();
            let fault = Fault::new(
                FieldCode::UnknownValue,
                (format!("must be one of: {}", names.join(", ")), format!("须为其中之一：{}", names.join(", "))),
            );
            Error::field("channel", fault)
        })
    }

    /// Returns the channel of an order.
    ///
    /// # Errors
    /// `order_state` if it is no longer configured.
    pub fn of(&self, order: &Order) -> Result<&PaymentChannel> {
        self.find(&order.channel).ok_or_else(|| {
            let detail = (
                format!("The order belongs to the gateway `{}`, which is not configured.", order.channel),
                format!("订单属于支付渠道 `{}`，该渠道未配置。", order.channel),
            );
            Error::new(Code::OrderState).detail(detail)
        })
    }

    /// Returns true if the order's channel and app are configured, so that its provider can be asked about it.
    pub(super) fn can_serve(&self, order: &Order) -> bool {
        self.find(&order.channel).is_some_and(|channel| order.belongs_to(channel.gateway.as_ref()))
    }

    /// Rejects an order whose channel or app is not configured.
    ///
    /// # Errors
    /// `order_state`.
    pub(super) fn require_app(&self, order: &Order) -> Result<()> {
        order.require_app(self.of(order)?.gateway.as_ref())
    }

    /// Returns the channel that receives callbacks at `/payment/notify`.
    pub(super) fn of_words(&self) -> Option<&PaymentChannel> {
        self.all().find(|channel| channel.gateway.answers_in_words())
    }
}

/// A gateway of a real provider.
enum BuiltGateway {
    WeChat(Arc<WeChatPay>),
    Other(Arc<dyn PaymentGateway>),
}

impl BuiltGateway {
    fn gateway(&self) -> Arc<dyn PaymentGateway> {
        match self {
            Self::WeChat(gateway) => Arc::clone(gateway) as _,
            Self::Other(gateway) => Arc::clone(gateway),
        }
    }
}

/// Returns the real providers with settings, whether they take new orders or not.
fn configured(config: &Config) -> impl Iterator<Item = PaymentProvider> + use<> {
    let sold = config.payment_channels();
    let has = [
        (PaymentProvider::Alipay, config.payment.private_key.is_some()),
        (PaymentProvider::Wechat, !config.payment_wechat.merchant_id.is_empty()),
        (PaymentProvider::Stripe, config.payment_stripe.secret_key.is_some()),
    ];
    has.into_iter().filter(move |(provider, is_set)| *is_set || sold.contains(provider)).map(|(provider, _)| provider)
}

/// Returns the faults in the settings of all real gateways.
pub fn setting_faults(config: &Config) -> Vec<String> {
    let clock: GatewayClock = Arc::new(|| 0);
    configured(config).filter_map(|provider| built(config, provider, &clock, "").err()).flatten().collect()
}

/// Builds the gateways of all real providers without a database, for checks.
///
/// # Errors
/// `configuration` for each gateway with faults in its settings.
pub fn real_gateways(config: &Config, clock: &GatewayClock) -> Vec<Result<Arc<dyn PaymentGateway>>> {
    let gateway = |provider| match built(config, provider, clock, "") {
        Ok(built) => Ok(built.gateway()),
        Err(faults) => Err(configuration_error(&faults)),
    };
    configured(config).map(gateway).collect()
}

/// Builds a gateway, or returns all faults of its settings.
fn built(
    config: &Config,
    provider: PaymentProvider,
    clock: &GatewayClock,
    certificates: &str,
) -> Result<BuiltGateway, Vec<String>> {
    let clock = Arc::clone(clock);
    let clock = Box::new(move || clock());
    let prefixed = |section: &'static str| {
        move |faults: Vec<SettingFault>| -> Vec<String> {
            faults.iter().map(|fault| format!("{section}.{fault}")).collect()
        }
    };
    match provider {
        PaymentProvider::Alipay => alipay_settings(config).and_then(|settings| {
            let gateway = Alipay::new(&settings, clock).map_err(|faults| {
                let of_section = |fault: &SettingFault| match fault.setting {
                    "app_certificate" | "alipay_certificate" | "root_certificates" => "payment.alipay",
                    _ => "payment",
                };
                faults.iter().map(|fault| format!("{}.{fault}", of_section(fault))).collect::<Vec<_>>()
            });
            gateway.map(|gateway| BuiltGateway::Other(Arc::new(gateway)))
        }),
        PaymentProvider::Wechat => wechat_settings(config, certificates).and_then(|settings| {
            let gateway = WeChatPay::new(&settings, clock).map_err(prefixed("payment.wechat"));
            gateway.map(|gateway| BuiltGateway::WeChat(Arc::new(gateway)))
        }),
        PaymentProvider::Stripe => {
            let gateway = StripeGateway::new(stripe_settings(config), clock).map_err(prefixed("payment.stripe"));
            gateway.map(|gateway| BuiltGateway::Other(Arc::new(gateway)))
        }
        PaymentProvider::Sandbox => Err(vec!["payment.gateway: the sandbox needs the database".to_owned()]),
    }
}

fn alipay_settings(config: &Config) -> Result<alipay::AlipaySettings, Vec<String>> {
    let (payment, files) = (&config.payment, &config.payment_alipay);
    let private_key = payment.private_key.as_ref().map_or("", |key| key.expose_secret());
    let texts = [
        ("payment.alipay.app_certificate", &files.app_certificate),
        ("payment.alipay.alipay_certificate", &files.alipay_certificate),
        ("payment.alipay.root_certificates", &files.root_certificates),
    ];
    let certificates = if texts.iter().any(|(_, path)| path.is_some()) {
        let [app, alipay, roots] = texts.map(|(setting, path)| match path {
            Some(path) => read_file(setting, path),
            None => Err(format!("{setting}: is required in certificate mode, beside the other two files")),
        });
        match (app, alipay, roots) {
            (Ok(app), Ok(alipay), Ok(roots)) => Some(AlipayCertificateTexts { app, alipay, roots }),
            (app, alipay, roots) => return Err([app, alipay, roots].into_iter().filter_map(Result::err).collect()),
        }
    } else {
        None
    };
    Ok(alipay::AlipaySettings {
        app_id: payment.app_id.clone(),
        seller_id: payment.seller_id.clone(),
        private_key: private_key.to_owned(),
        alipay_public_key: payment.alipay_public_key.clone(),
        certificates,
        gateway_url: payment.gateway_url.clone(),
        notify_url: notify_url(config),
        timeout: payment.call_timeout,
    })
}

fn wechat_settings(config: &Config, certificates: &str) -> Result<WeChatSettings, Vec<String>> {
    let wechat = &config.payment_wechat;
    let read = |setting, path: &Option<String>| path.as_ref().map(|path| read_file(setting, path)).transpose();
    let public_key = read("payment.wechat.public_key", &wechat.public_key);
    let platform = read("payment.wechat.platform_certificates", &wechat.platform_certificates);
    let (public_key, platform) = match (public_key, platform) {
        (Ok(public_key), Ok(platform)) => (public_key, platform),
        (public_key, platform) => return Err([public_key.err(), platform.err()].into_iter().flatten().collect()),
    };
    let known = format!("{}\n{certificates}", platform.unwrap_or_default());
    let secret = |key: &Option<secrecy::SecretString>| {
        key.as_ref().map(|key| key.expose_secret().to_owned()).unwrap_or_default()
    };
    Ok(WeChatSettings {
        app_id: wechat.app_id.clone(),
        merchant_id: wechat.merchant_id.clone(),
        merchant_serial: wechat.merchant_serial.clone(),
        private_key: secret(&wechat.private_key),
        api_v3_key: secret(&wechat.api_v3_key),
        public_key_id: wechat.public_key_id.clone(),
        public_key,
        platform_certificates: (!known.trim().is_empty()).then_some(known),
        base_url: wechat.base_url.clone(),
        notify_url: wechat.notify_url.clone().unwrap_or_else(|| own_notify_url(config, "/wechat")),
        timeout: config.payment.call_timeout,
    })
}

fn stripe_settings(config: &Config) -> StripeGatewaySettings {
    let stripe = &config.payment_stripe;
    StripeGatewaySettings {
        stripe: StripeSettings {
            secret_key: stripe.secret_key.clone().unwrap_or_default(),
            webhook_secrets: [&stripe.webhook_secret, &stripe.old_webhook_secret]
                .into_iter()
                .flatten()
                .cloned()
                .collect(),
            base_url: stripe.base_url.clone(),
            timeout: config.payment.call_timeout,
        },
        currency: stripe.currency,
        prices: stripe.prices.0.clone(),
        success_url: stripe.success_url.clone(),
        cancel_url: stripe.cancel_url.clone(),
    }
}

fn read_file(setting: &str, path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{setting}: cannot read {path}: {error}"))
}

fn breaker_name(channel: &str) -> &'static str {
    match channel {
        "alipay" => "payment.alipay",
        "wechat" => "payment.wechat",
        "stripe" => "payment.stripe",
        _ => "payment.sandbox",
    }
}

fn notify_url(config: &Config) -> String {
    config.payment.notify_url.clone().unwrap_or_else(|| own_notify_url(config, ""))
}

fn own_notify_url(config: &Config, channel: &str) -> String {
    let base = config.server.base_url();
    format!("{}/payment/notify{channel}", base.trim_end_matches('/'))
}
