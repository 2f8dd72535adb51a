//! App releases, and the check for updates.
//!
//! Releases are ordered by version code. A release without a platform is for all platforms.

use semver::Version;
use url::Url;

use crate::{
    core::Core,
    error::{Code, Error, Fault, FieldCode, Result},
    store::{Pending, Read, Row, RowResult},
    types::{PageRequest, Paginated, Timestamp, clean},
};

/// The largest version code. It is exact in clients that use floating-point numbers.
pub const LARGEST_CODE: i64 = 9_007_199_254_740_991;

/// The columns that [`release_of`] reads, in its order.
macro_rules! release_columns {
    () => {
        "id, version, version_code, platform, is_required, notes, download_url, published_at, withdrawn_at"
    };
}

macro_rules! select_releases {
    ($rest:literal) => {
        concat!("select ", release_columns!(), " from releases ", $rest)
    };
}

/// A release before it is published.
#[derive(Clone, Debug)]
pub struct ReleaseDraft {
    pub version: AppVersion,
    pub version_code: i64,
    pub platform: Option<String>,
    /// Clients older than this release must update.
    pub is_required: bool,
    pub notes: String,
    pub download_url: Option<DownloadUrl>,
}

/// A published release.
#[derive(Clone, Debug)]
pub struct Release {
    pub id: i64,
    pub version: String,
    pub version_code: i64,
    pub platform: Option<String>,
    pub is_required: bool,
    pub notes: String,
    pub download_url: Option<String>,
    pub published_at: Timestamp,
    /// Clients no longer hear of the release.
    pub withdrawn_at: Option<Timestamp>,
}

/// An app version, by semantic versioning. A leading `v` and a missing minor or patch number are tolerated. It has no
/// total order: build metadata after a `+` distinguishes builds without ordering them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppVersion(Version);

/// The download URL of a release: `https`, or an app store's own scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadUrl(String);

/// A client's version. The code wins over the text.
#[derive(Clone, Debug)]
pub enum ClientVersion {
    Code(i64),
    Text(AppVersion),
}

/// The recommendation for a client.
#[derive(Clone, Debug)]
pub struct UpdateCheck {
    pub update_available: bool,
    pub update_required: bool,
    pub latest: Option<Release>,
}

impl AppVersion {
    /// Parses a version.
    ///
    /// # Errors
    /// `invalid_format`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let text = text.trim();
        let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let (numbers, rest) = text.split_at(end);
        let missing = 2_usize.saturating_sub(numbers.matches('.').count());
        let version = format!("{numbers}{}{rest}", ".0".repeat(missing)).parse();
        version.map(Self).map_err(|_| {
            Fault::new(FieldCode::InvalidFormat, ("must be a version, such as 2.3.1", "须为版本号，例如 2.3.1"))
        })
    }

    /// Returns true if the other version is newer.
    fn is_before(&self, other: &Self) -> bool {
        self.0.cmp_precedence(&other.0).is_lt()
    }
}

impl DownloadUrl {
    /// Maximum characters of a URL.
    pub const LENGTH: usize = 2000;

    /// Parses a URL.
    ///
    /// # Errors
    /// `too_long`, `invalid_character`, `invalid_format`; `rejected` for another scheme.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        const SCHEMES: [&str; 3] = ["https", "market", "itms-apps"];
        let text = clean(text, Self::LENGTH)?;
        let url = Url::parse(&text).map_err(|_| Fault::new(FieldCode::InvalidFormat, ("must be a URL", "须为 URL")))?;
        if SCHEMES.contains(&url.scheme()) && url.has_host() {
            return Ok(Self(url.into()));
        }
        Err(Fault::new(
            FieldCode::Rejected,
            ("must begin with https://, market:// or itms-apps://", "须以 https://、market:// 或 itms-apps:// 开头"),
        ))
    }
}

impl std::fmt::Display for AppVersion {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Publishes a release.
///
/// # Errors
/// `already_exists` if the platform has a release with this version code.
pub fn publish(core: &Core, draft: ReleaseDraft) -> Pending<Release> {
    core.store.write(move |tx| {
        let made = tx.first(
            concat!(
                "insert into releases (version, version_code, platform, is_required, notes, download_url, \
                 published_at) values (?1, ?2, ?3, ?4, ?5, ?6, ?7) on conflict do nothing returning ",
                release_columns!()
            ),
            (
                draft.version.to_string(),
                draft.version_code,
                &draft.platform,
                draft.is_required,
                &draft.notes,
                draft.download_url.as_ref().map(|DownloadUrl(url)| url),
                tx.now.0,
            ),
            release_of,
        )?;
        made.ok_or_else(|| {
            let platform = draft.platform.as_deref().unwrap_or("all platforms");
            let code = draft.version_code;
            let detail = (
                format!("A release with version code {code} for {platform} already exists."),
                format!("{platform} 已有版本代码为 {code} 的版本。"),
            );
            Error::new(Code::AlreadyExists).detail(detail)
        })
    })
}

/// Withdraws a release, so that clients are no longer offered it. Its version code can be published again.
///
/// # Errors
/// `not_found`, also for a release that is withdrawn already.
pub fn withdraw(core: &Core, id: i64) -> Pending<Release> {
    core.store.write(move |tx| {
        let sql = concat!(
            "update releases set withdrawn_at = ?2 where id = ?1 and withdrawn_at is null returning ",
            release_columns!()
        );
        tx.first(sql, (id, tx.now.0), release_of)?.ok_or_else(|| Code::NotFound.into())
    })
}

/// Lists all releases, highest version code first.
pub fn list(core: &Core, page: PageRequest) -> Result<Paginated<Release>> {
    core.store.read(|tx| {
        let items = tx.all(
            select_releases!("order by version_code desc, id desc limit ?1 offset ?2"),
            (page.size, page.offset()),
            release_of,
        )?;
        Ok(Paginated { items, total: tx.one("select count(*) from releases", (), |row| row.get(0))? })
    })
}

/// Returns the newest release for a platform, or of all platforms if none is given.
pub fn latest(core: &Core, platform: Option<&str>) -> Result<Option<Release>> {
    core.store.read(|tx| latest_in(tx, platform))
}

/// Returns the recommendation for a client with this version.
pub fn check(core: &Core, client: &ClientVersion, platform: Option<&str>) -> Result<UpdateCheck> {
    core.store.read(|tx| {
        let Some(latest) = latest_in(tx, platform)? else {
            return Ok(UpdateCheck { update_available: false, update_required: false, latest: None });
        };
        let required = latest_required_in(tx, platform)?;
        Ok(UpdateCheck {
            update_available: client.is_before(&latest),
            update_required: required.is_some_and(|required| client.is_before(&required)),
            latest: Some(latest),
        })
    })
}

impl ClientVersion {
    fn is_before(&self, release: &Release) -> bool {
        match self {
            Self::Code(code) => *code < release.version_code,
            // Published versions were parsed by the same function.
            Self::Text(version) => {
                AppVersion::parse(&release.version).is_ok_and(|published| version.is_before(&published))
            }
        }
    }
}

fn latest_in(tx: &Read<'_>, platform: Option<&str>) -> Result<Option<Release>> {
    tx.first(
        select_releases!(
            "where withdrawn_at is null and (platform = ?1 or platform is null or ?1 is null) \
             order by version_code desc, id desc limit 1"
        ),
        [platform],
        release_of,
    )
}

fn latest_required_in(tx: &Read<'_>, platform: Option<&str>) -> Result<Option<Release>> {
    tx.first(
        select_releases!(
            "where is_required = 1 and withdrawn_at is null and (platform = ?1 or platform is null or ?1 is null) \
             order by version_code desc, id desc limit 1"
        ),
        [platform],
        release_of,
    )
}

fn release_of(row: &Row<'_>) -> RowResult<Release> {
    Ok(Release {
        id: row.get(0)?,
        version: row.get(1)?,
        version_code: row.get(2)?,
        platform: row.get(3)?,
        is_required: row.get(4)?,
        notes: row.get(5)?,
        download_url: row.get(6)?,
        published_at: Timestamp(row.get(7)?),
        withdrawn_at: row.get::<Option<i64>>(8)?.map(Timestamp),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(text: &str) -> AppVersion {
        AppVersion::parse(text).unwrap()
    }

    #[test]
    fn orders_versions_by_semver() {
        let ascending =
            ["0.9", "1.0.0-alpha", "1.0.0-alpha.2", "1.0.0-alpha.10", "1.0.0", "v1.0.1", "1.2", "1.10", "2"];
        assert!(ascending.windows(2).all(|pair| version(pair[0]).is_before(&version(pair[1]))));
        assert_eq!(version("v2.3"), version("2.3.0"));
        assert!(
            !version("2.3.2").is_before(&version("2.3.2+232")) && !version("2.3.2+232").is_before(&version("2.3.2"))
        );
        for text in ["", "v", "one", "1.2.3.4", "1..2", "-1.0", "1.2.x", "01.2.3", "1.2.3-", "99999999999999999999.0.0"]
        {
            assert_eq!(AppVersion::parse(text).map_err(|fault| fault.code), Err(FieldCode::InvalidFormat), "{text}");
        }
    }

    proptest! {
        #[test]
        fn displays_versions_as_parsed(major: u16, minor: u16, patch: u16) {
            let text = format!("{major}.{minor}.{patch}");
            prop_assert_eq!(version(&text).to_string(), text);
        }

        #[test]
        fn parses_any_text_without_panic(text in ".*") {
            let _ = AppVersion::parse(&text);
        }
    }
}
