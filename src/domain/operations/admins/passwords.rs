//! Hashes and verifies administrators' passwords with Argon2id in a bounded amount of memory.
//!
//! At most [`CONCURRENT_HASHES`] run at once, and each returns its memory to the system when it is done. With
//! `argon2`'s own allocation it would not. glibc raises its mmap threshold to the size of the first freed block, so it
//! serves later blocks from the arenas of threads and keeps them.

use std::time::Duration;

use argon2::{
    Algorithm, Argon2, Block, Params, Version,
    password_hash::phc::{Output, ParamsString, PasswordHash, Salt},
};

use crate::{
    concurrency::fair_semaphore::{FairLimits, FairPermit, FairSemaphore},
    domain::identity::codes::ClientNetworks,
    error::{Error, Result},
    types::random_bytes,
};

/// The hash that is checked for unknown names, so that the response takes as long.
pub(super) const DUMMY_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Each hash takes 19 MiB.
const CONCURRENT_HASHES: usize = 2;
/// The queue of strangers: short, because each waiting request holds a thread.
const LIMITS: FairLimits =
    FairLimits { permits: CONCURRENT_HASHES, waiting: 64, waiting_per_key: 8, max_wait: Duration::from_secs(5) };
/// Size of an allocation that glibc always maps and unmaps by itself: more than `DEFAULT_MMAP_THRESHOLD_MAX`, 32 MiB.
/// Pages that no hash touches take no memory.
const ALWAYS_MAPPED: usize = 33 << 20;

/// The semaphore of password hashes. Callers wait for their turn by network.
pub(super) struct PasswordHasher(FairSemaphore);

/// The caller that waits for a hash.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waiting<'a> {
    /// Somebody with a session, a link or the command line, who comes first.
    Known(&'a str),
    /// Anybody, by the widest of their networks.
    Stranger(&'a ClientNetworks),
}

/// The permit for one hash, with which it is computed.
pub(super) struct HashPermit<'hasher>(#[allow(dead_code, reason = "held until the hash is done")] FairPermit<'hasher>);

impl PasswordHasher {
    pub(super) fn new() -> Self {
        Self(FairSemaphore::new(LIMITS))
    }

    /// Waits for the permit of one hash.
    ///
    /// # Errors
    /// `overloaded` if the wait took too long or too many callers wait.
    pub(super) fn acquire(&self, caller: Waiting<'_>) -> Result<HashPermit<'_>> {
        let (key, is_urgent) = match caller {
            Waiting::Known(name) => (name, true),
            Waiting::Stranger(networks) => (networks.widest.as_ref().unwrap_or(&networks.wide).as_str(), false),
        };
        self.0.acquire(key, is_urgent).map(HashPermit)
    }
}

impl HashPermit<'_> {
    /// Returns the hash of a password in PHC form.
    pub(super) fn hash(&self, password: &str) -> Result<String> {
        let params = Params::default();
        let salt = Salt::new(&random_bytes::<{ Salt::RECOMMENDED_LENGTH }>()?).map_err(unusable)?;
        let hash = PasswordHash {
            algorithm: Algorithm::Argon2id.ident(),
            version: Some(Version::V0x13.into()),
            params: ParamsString::try_from(&params).map_err(unusable)?,
            hash: Some(self.compute(password, &salt, Algorithm::Argon2id, Version::V0x13, params)?),
            salt: Some(salt),
        };
        Ok(hash.to_string())
    }

    /// Returns true if the password has this hash.
    pub(super) fn verify(&self, hash: &str, password: &str) -> Result<bool> {
        let hash = PasswordHash::new(hash).map_err(unusable)?;
        let (Some(salt), Some(expected)) = (&hash.salt, &hash.hash) else {
            return Err(unusable("a stored password hash has no salt or no output"));
        };
        let algorithm = Algorithm::try_from(hash.algorithm.as_str()).map_err(unusable)?;
        let version = hash.version.map(Version::try_from).transpose().map_err(unusable)?.unwrap_or_default();
        let params = Params::try_from(&hash).map_err(unusable)?;
        // Outputs are compared in constant time.
        Ok(self.compute(password, salt, algorithm, version, params)? == *expected)
    }

    #[expect(clippy::unused_self, reason = "only the holder of a permit may compute a hash")]
    fn compute(
        &self,
        password: &str,
        salt: &Salt,
        algorithm: Algorithm,
        version: Version,
        params: Params,
    ) -> Result<Output> {
        let blocks = params.block_count();
        let length = params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
        let argon2 = Argon2::new(algorithm, version, params);
        let mut memory = Vec::with_capacity(blocks.max(ALWAYS_MAPPED / Block::SIZE));
        memory.resize(blocks, Block::new());
        let mut output = [0; Output::MAX_LENGTH];
        let output = output.get_mut(..length).ok_or_else(|| unusable("a stored password hash is too long"))?;
        argon2.hash_password_into_with_memory(password.as_bytes(), salt, output, &mut memory).map_err(unusable)?;
        Output::new(output).map_err(unusable)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of `map_err`")]
fn unusable(cause: impl ToString) -> Error {
    Error::internal(cause.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dummy_hash_costs_the_same_and_matches_no_password() {
        let hasher = PasswordHasher::new();
        let permit = hasher.acquire(Waiting::Known("root")).unwrap();
        assert!(!permit.verify(DUMMY_HASH, "").unwrap());
        let stored = permit.hash("correct horse battery").unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(permit.verify(&stored, "correct horse battery").unwrap());
        assert!(!permit.verify(&stored, "correct horse batteries").unwrap());
        assert_ne!(permit.hash("correct horse battery").unwrap(), stored);
    }

    #[test]
    fn verifies_hashes_of_the_library() {
        use argon2::PasswordHasher as _;
        let made = Argon2::default().hash_password(b"correct horse battery").unwrap().to_string();
        let hasher = PasswordHasher::new();
        assert!(hasher.acquire(Waiting::Known("root")).unwrap().verify(&made, "correct horse battery").unwrap());
    }
}
