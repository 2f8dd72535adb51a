//! Notes what the program is built from, for `yarrow version`, packs its larger tables, and has it linked as
//! the system allows.
//!
//! It asks nothing of the network. Built from an archive the commit is unknown, unless `YARROW_COMMIT` says it. Git is
//! asked for release builds only, so that a commit does not make every test compile anew.

#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

use std::{
    env,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

use flate2::{Compression, write::GzEncoder};

/// Tables of half a megabyte that few requests need, and those once.
const PACKED: [&str; 2] = ["character-parts.tsv", "han-words.txt"];

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    for table in PACKED {
        pack(table, fs::read(noted(&format!("assets/{table}")))?)?;
    }
    println!("cargo:rerun-if-env-changed=YARROW_COMMIT");
    let profile = variable("PROFILE");
    let commit = env::var("YARROW_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = commit.or_else(|| commit_of_release(&profile)).unwrap_or_else(|| "unknown".into());
    // The names do not begin like settings: cargo hands them to the program that it runs.
    let compiler = said(Command::new(variable("RUSTC")).arg("--version")).unwrap_or_default();
    for (name, value) in [("COMMIT", commit), ("PROFILE", profile), ("TARGET", variable("TARGET")), ("RUSTC", compiler)]
    {
        println!("cargo:rustc-env=BUILT_{name}={value}");
    }
    if understands_packed_relocations() {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    Ok(())
}

/// A path that the build depends on.
fn noted(path: &str) -> &str {
    println!("cargo:rerun-if-changed={path}");
    path
}

fn pack(name: &str, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut packer = GzEncoder::new(File::create(built(&format!("{name}.gz")))?, Compression::best());
    packer.write_all(content.as_ref())?;
    packer.finish()?;
    Ok(())
}

/// A file that the build makes.
fn built(name: &str) -> PathBuf {
    Path::new(&variable("OUT_DIR")).join(name)
}

/// Whether the C library here can start a program whose relocations are packed, which makes it a twentieth smaller. GNU's
/// can from 2.36 on; what is built on an older system is as large as it was, and runs there.
fn understands_packed_relocations() -> bool {
    if variable("HOST") != variable("TARGET") {
        return false;
    }
    let version = said(Command::new("getconf").arg("GNU_LIBC_VERSION"));
    let version = version.as_deref().and_then(|version| version.strip_prefix("glibc ")?.split_once('.'));
    let numbers = version.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    numbers.is_some_and(|(major, minor): (u32, u32)| (major, minor) >= (2, 36))
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

fn commit_of_release(profile: &str) -> Option<String> {
    if profile != "release" {
        return None;
    }
    // An archive that was unpacked below some other repository is not of that repository.
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let here = variable("CARGO_MANIFEST_DIR");
    if Path::new(&top).canonicalize().ok()? != Path::new(&here).canonicalize().ok()? {
        return None;
    }
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        println!("cargo:rerun-if-changed={path}");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    said(Command::new("git").args(arguments))
}

/// The first line that a command says, if it succeeds.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}
